"""What the parser of flags has to say against a command line, in one sentence instead of a box."""

import re
from collections.abc import Sequence
from difflib import get_close_matches

_FRAME = re.compile(r"[╭╮╰╯│─]")
_FLAG = re.compile(r"^\s*(--[\w-]+)")


def refusal(box: str, arguments: Sequence[str], commands: Sequence[str]) -> str:
    """The sentence.

    Args:
        box: what the parser printed.
        arguments: the command line.
        commands: names of all commands.
    """
    sections = _sections(box)
    first = " ".join(" ".join(sections[0]).split()) if sections else "the command line"
    command = arguments[0] if arguments and arguments[0] in commands else ""
    helped = f"what `polytta {command} --help` lists" if command else f"the commands {', '.join(commands)}"
    if found := re.match(r"Unrecognized (?:or misplaced )?options: ([^\s,]+)", first):
        unknown = found[1]
        flags = [flag[1] for section in sections[1:] for line in section if (flag := _FLAG.match(line))]
        near = get_close_matches(unknown, [*flags, *commands], 1)
        return f"{unknown}: got something unknown; allowed is {helped}{f' ({near[0]}?)' if near else ''}."
    if found := re.match(r"invalid choice '(.*)' for argument '(.*)'\. Expected one of \((.*?),?\)\.", first):
        return f"{found[2]}: got {found[1]!r}; allowed are {found[3]}."
    if found := re.match(r"Error parsing (\S+): .*?\[(.*?)\]", first):
        kinds = [line.split()[1:] for section in sections[1:] for line in section if line.strip().startswith(found[1])]
        allowed = " ".join(kinds[0]).replace("{None}|", "") if kinds and kinds[0] else helped
        return f"{found[1]}: got {found[2]}; allowed is {allowed}."
    if found := re.match(r"Missing value for argument '(.*)'", first):
        return f"{found[1]}: got no value; allowed is {helped}."
    if first.startswith("Missing from"):
        lines = [line for line in sections[0][1:] if line.strip()]
        outermost = min(map(_indentation, lines))
        named = [line.split() for line in lines if _indentation(line) == outermost]
        missing = [words[0] for words in named]
        if len(named) == 1 and (choices := re.fullmatch(r"\{(.*)\}", " ".join(named[0][1:]))):
            return f"{missing[0]}: got nothing; allowed are {', '.join(choices[1].split(','))}."
        return f"{', '.join(missing)}: got nothing; allowed is {helped}."
    if first.startswith("Expected one of"):
        return f"command: got none; allowed are {', '.join(commands)}."
    return f"{first.rstrip('.')}: got that; allowed is {helped}."


def _sections(box: str) -> list[list[str]]:
    """Lines between the rules of the box, without its title; where letters are few, the box is drawn with hyphens."""
    sections: list[list[str]] = [[]]
    lines = box.splitlines()
    for line in lines if box.startswith("╭") else lines[2:]:
        if line.startswith(("╭", "╰")):
            continue
        if set(line) <= set("│─- "):
            sections.append([])
        else:
            sections[-1].append(_FRAME.sub("", line))
    return [section for section in sections if any(line.strip() for line in section)]


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())
