import base64
import io
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
from PIL import Image

from polytta.lab.pages.elements import Plot, facts, figures, note, picture, pictures


def test_a_picture_holds_its_pixels() -> None:
    image = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    element = picture(image, "<dog>")
    found = re.search(r'src="data:image/png;base64,([^"]*)"', element)
    assert found is not None
    with Image.open(io.BytesIO(base64.b64decode(found[1]))) as stored:
        assert (np.asarray(stored) == image).all()
    assert 'alt="&lt;dog&gt;" width="7" height="5"' in element


def test_elements_escape_what_they_are_given() -> None:
    plot = Plot("a < b", "<svg/>", "c & d")
    root = ElementTree.fromstring(f"<div>{note('x < y')}{figures([plot])}{facts({'<k>': '&'})}</div>")
    shown = [text.strip() for text in root.itertext() if text.strip()]
    assert shown == ["x < y", "a < b", "c & d", "<k>", "&"]
    assert root.find(".//figure/svg") is not None


def test_pictures_stand_over_their_names() -> None:
    strip = pictures({"clean": np.zeros((2, 2, 3), np.uint8), "<fog>": np.ones((2, 2, 3), np.uint8)})
    assert strip.count("<img ") == 2
    assert strip.index("clean</div>") < strip.index("&lt;fog&gt;</div>")
