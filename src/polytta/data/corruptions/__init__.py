"""Image corruptions of ImageNet-C and CIFAR-C."""

from polytta.data.corruption_names import COMMON_CORRUPTIONS as COMMON_CORRUPTIONS
from polytta.data.corruption_names import CORRUPTIONS as CORRUPTIONS
from polytta.data.corruption_names import EXTRA_CORRUPTIONS as EXTRA_CORRUPTIONS
from polytta.data.corruption_names import SEVERITIES as SEVERITIES
from polytta.data.corruptions._constants import ConstantSet as ConstantSet
from polytta.data.corruptions._dispatch import corrupt as corrupt
from polytta.data.corruptions.writer import write_cifar_c as write_cifar_c
from polytta.data.corruptions.writer import write_imagenet_c as write_imagenet_c
