import pytest
from tests.data.writers import mark_generated, write_image

from polytta.data.datasets import waterbirds
from polytta.errors import DataError

HEADER = "img_id,img_filename,y,split,place,place_filename\n"


@pytest.fixture
def folder(tmp_path):
    base = tmp_path / "waterbird_complete95_forest2water2"
    mark_generated(base)
    rows = [(1, "001.A/a.jpg", 0, 2, 1), (2, "002.B/b.jpg", 1, 2, 0), (3, "003.C/c.jpg", 1, 0, 1)]
    for number, name, *_ in rows:
        write_image(base / name, 10 * number)
    lines = (f"{n},{name},{y},{split},{place},/x/y.jpg\n" for n, name, y, split, place in rows)
    (base / "metadata.csv").write_text(HEADER + "".join(lines))
    return base


def test_split_labels_and_groups(folder):
    opened = waterbirds(root=folder.parent)
    assert opened.labels.tolist() == [0, 1]
    assert opened.groups.tolist() == [1, 2]
    image, label, group = opened[1]
    assert (int(image.mean()), label, group) == (20, 1, 2)
    assert len(waterbirds("train", root=folder)) == 1


def test_official_count(folder):
    (folder / "polytta-generated.json").unlink()
    with pytest.raises(DataError, match=r"metadata\.csv: got 2 test images; allowed is 5,794"):
        waterbirds(root=folder.parent)


def test_missing_table_and_column(folder):
    (folder / "metadata.csv").write_text("img_id,y,split\n")
    with pytest.raises(DataError, match="got no column img_filename"):
        waterbirds(root=folder.parent)
    (folder / "metadata.csv").unlink()
    with pytest.raises(
        DataError, match=r"metadata\.csv: got no such file or folder; allowed is the table of Waterbirds"
    ):
        waterbirds(root=folder.parent)


def test_missing_picture_is_named_when_read(folder):
    (folder / "001.A/a.jpg").unlink()
    with pytest.raises(DataError, match=r"a\.jpg: got nothing to read"):
        waterbirds(root=folder.parent)[0]
