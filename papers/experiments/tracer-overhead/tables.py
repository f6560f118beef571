"""Puts tables into README.md, where that has marks for them."""

import pathlib

README = pathlib.Path(__file__).with_name("README.md")


def replace(name, tables):
    """Puts `tables` between the marks of this name, in the place of what is there."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    text = README.read_text()
    before, found, rest = text.partition(begin)
    _, also_found, after = rest.partition(end)
    if not (found and also_found):
        raise SystemExit(f"{README} has no marks {begin.strip()} and {end.strip()}")
    README.write_text(f"{before}{begin}\n{tables}\n{end}{after}")
