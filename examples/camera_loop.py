"""Frames as OpenCV gives them, one at a time: uint8, height x width x BGR. ``input=`` makes images of them."""

import cv2
import numpy as np
import torch

import polytta
from polytta.data.bundled import load_cifar10_subset


def main(frames: int = 12) -> list[int]:
    """The classes said of each frame, -1 where it is not sure enough."""
    made = polytta.models.create("bundled/cifar10_resnet_gn")

    def images_of(frame: np.ndarray) -> torch.Tensor:
        return made.preprocessing([cv2.cvtColor(cv2.resize(frame, (32, 32)), cv2.COLOR_BGR2RGB)])

    # The small population only looks, which is quicker than learning as well.
    adapted = polytta.adapt(made.module, size="small", input=images_of)
    photographs = load_cifar10_subset()
    said = []
    for number in range(frames):
        # In earnest: _, frame = camera.read(), with camera = cv2.VideoCapture(0).
        frame = cv2.resize(cv2.cvtColor(photographs[number][0], cv2.COLOR_RGB2BGR), (320, 240))
        said.append(int(adapted.answer(frame, abstain_below=0.5)))
    print([photographs.classes[one] if one >= 0 else "?" for one in said])
    return said


if __name__ == "__main__":
    main()
