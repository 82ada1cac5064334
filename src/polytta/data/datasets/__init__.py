"""Datasets in their official on-disk layouts, read lazily and never downloaded."""

from polytta.data.datasets.base import ArrayImages as ArrayImages
from polytta.data.datasets.base import FileImages as FileImages
from polytta.data.datasets.base import ImageDataset as ImageDataset
from polytta.data.datasets.cifar_c import cifar10_c as cifar10_c
from polytta.data.datasets.cifar_c import cifar100_c as cifar100_c
from polytta.data.datasets.colored_mnist import colored_mnist as colored_mnist
from polytta.data.datasets.generated import Generated as Generated
from polytta.data.datasets.generated import read_generated as read_generated
from polytta.data.datasets.image_folder import image_folder as image_folder
from polytta.data.datasets.imagenet_c import imagenet_c as imagenet_c
from polytta.data.datasets.imagenet_r import imagenet_r as imagenet_r
from polytta.data.datasets.imagenet_r import imagenet_r_mask as imagenet_r_mask
from polytta.data.datasets.npz import npz_images as npz_images
from polytta.data.datasets.status import DatasetStatus as DatasetStatus
from polytta.data.datasets.status import status as status
from polytta.data.datasets.visda2021 import visda2021 as visda2021
from polytta.data.datasets.waterbirds import waterbirds as waterbirds
from polytta.data.datasets.webdataset import webdataset as webdataset
