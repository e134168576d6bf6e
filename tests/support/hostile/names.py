"""Text that is no text alone: a name of each kind that some terminal, format or reader takes for its own."""

from __future__ import annotations

KINDS = {
    "markup": "[/x][bold]us :smile:",
    "colour": "\x1b[31m\x1b[2J",
    "title of a window": "\x1b]0;mine\x07",
    "C1 control": "\x9b2J\x90\x9c",
    "bell and backspace": "\x07\x08\x0b\x0c\x00\x7f",
    "line break": "a\n  done      forged\r\n| x |",
    "carriage return": "\r  failed",
    "line of Unicode": "a\u2028b\u2029c\x85d",
    "turned around": "\u202egnirts\u202c \u2066x\u2069\u200f",
    "no width": "\u200b\ufeff\u2060\u00ad\u200d",
    "empty letters": "\u3164\u115f\uffa0\u2800",
    "half of a pair": "\ud800 \udfff",
    "no letter": "\ue000\uffff\U000e0001\U0010ffff",
    "Markdown": "|`](http://example.org/)`` <img src=x> **b** _i_ \\| - [ ] $x$ ~~s~~",
    "comment": "<!-- anabranch plan payments --></details>",
    "call": "@team @acme/core #123 GH-7 !4 &5 ~bug %9 user@host www.example.org",
    "fence": "```\n````",
    "formula": "=cmd|' /C calc'!A0",
    "wide formula": "\uff1dcmd",
    "sum": "+1;-1,@x",
    "minus": "-1+1",
    "tab": "\t=x",
    "quotes": "\"quoted\" 'too'",
    "neutral already": '"=x"',
    "XML": "]]></title><script>&#x1b;&amp;",
    "Mermaid": '"]; %% end\n  click c0 "http://example.org" --> }',
    "backslash": "C:\\x1b\\n",
    "long": "long" * 25_000,
    "long and escaped": "\x1b" * 32_000,
}
"""By what is hostile in it, the text."""

PLAIN = "harmless"


def named(kind: str) -> str:
    """Return a name that begins with what is hostile, and goes on as any other."""
    return f"{KINDS[kind]} {PLAIN}"
