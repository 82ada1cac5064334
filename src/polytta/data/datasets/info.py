"""What a dataset is called, where it lies under the data folder and where a user gets it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DatasetInfo:
    """Facts for the status list.

    Attributes:
        name: Name used in records.
        folder: Folder under the data root, as the official archive unpacks.
        probes: Paths inside that folder whose presence means the dataset is there.
        source: Where to get it, in words.
    """

    name: str
    folder: str
    probes: tuple[str, ...]
    source: str
