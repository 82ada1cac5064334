import re

from polytta.lab.pages.page import Section, render_page


def test_every_section_can_be_reached_from_the_contents() -> None:
    sections = (Section("one", "First & best", ("<p>a</p>", "<p>b</p>")), Section("two", "Second", ()))
    reached = [("one", "First &amp; best"), ("two", "Second")]
    page = render_page("A <title>", "What it is & why.", sections)
    assert re.findall(r'<a href="#(\w+)">([^<]*)</a>', page) == reached
    assert re.findall(r'<section id="(\w+)">\n<h2>([^<]*)</h2>', page) == reached
    assert "<p>a</p>\n<p>b</p>" in page
    assert "<h1>A &lt;title&gt;</h1><p>What it is &amp; why.</p>" in page
    assert "$" not in page


def test_nothing_is_fetched() -> None:
    page = render_page("title", "lead", ())
    assert all(address == "data:," for address in re.findall(r'(?:src|href)="([^"]*)"', page))
    assert "url(" not in page
    assert "@import" not in page
