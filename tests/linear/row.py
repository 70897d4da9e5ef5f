"""What a row of the test is, and what each call does to it.

A row is (a, b, n): the strings in f:a and g:b, None if there is none, and the number in f:n, 0 if
there is none. A column of family "t" says something that is never changed, so no row ever vanishes.

    ["write", text]                   a and b become the text                      answer: "ok"
    ["delete"]                        a, b and n go, all in one request            answer: "ok"
    ["add", amount]                   ReadModifyWriteRow adds to n                 answer: the new n
    ["swap", text, then, otherwise]   CheckAndMutateRow: if a is the text, a and b become `then`;
                                      else b becomes `otherwise`                   answer: whether
    ["refused", amount]               ReadModifyWriteRow adds to n, and to family "t", which has no
                                      number: refused as a whole                   answer: "refused"
    ["read"]                          ReadRows, alone or as part of a scan         answer: [a, b, n]
"""

INITIAL = (None, None, 0)


def step(state, call, answer):
    """The row after the call; None if the call cannot have been answered like this. An answer that
    is None was not seen."""
    kind, *arguments = call
    after, right = EFFECTS[kind](*state, *arguments)
    return after if answer is None or answer == right else None


def only_looks(call):
    return call[0] in ("read", "refused")


def marks(state):
    """No text is written twice, so one that is overwritten never comes back."""
    return {(column, text) for column, text in zip("ab", state, strict=False) if text is not None}


def needs(call, answer):
    if call[0] == "read":
        return marks(answer)
    return {("a", call[1])} if call[0] == "swap" and answer else set()


def write(_a, _b, n, text):
    return (text, text, n), "ok"


def delete(_a, _b, _n):
    return INITIAL, "ok"


def add(a, b, n, amount):
    return (a, b, n + amount), n + amount


def swap(a, _b, n, text, then, otherwise):
    if a == text:
        return (then, then, n), True
    return (a, otherwise, n), False


def refused(a, b, n, _amount):
    return (a, b, n), "refused"


def read(a, b, n):
    return (a, b, n), [a, b, n]


EFFECTS = {
    "write": write,
    "delete": delete,
    "add": add,
    "swap": swap,
    "refused": refused,
    "read": read,
}
