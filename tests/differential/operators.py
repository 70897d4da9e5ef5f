"""The translator: what each operator and function is in GoogleSQL and in SQLite.

Where SQLite's own semantics are the same, its own operators are used, as little changed as can be;
where they are not, a comment tells the rule, and the work is done by a function of functions.py
(named g_…), which is written from GoogleSQL's documentation.
"""

from differential.tree import ANY_LEVEL, Op

# GoogleSQL's levels of binding, from tight to loose.
UNARY, TIMES, PLUS, SHIFT, AND_BITS, XOR_BITS, OR_BITS, COMPARE, NOT, AND, OR = range(2, 13)


def left(name, sign, level, sqlite=None):
    return Op(name, f"{{0}} {sign} {{1}}", sqlite, level, (level, level - 1))


def compare(name, google, sqlite=None):
    """Comparisons do not associate: no operand may be one without parentheses."""
    return Op(name, google, sqlite, COMPARE, (OR_BITS,))


def call(name, sqlite=None):
    return Op(name, f"{name}({{*}})", sqlite)


def case(texts):
    """CASE WHEN a THEN b … ELSE z END."""
    arms = zip(texts[:-1:2], texts[1:-1:2], strict=True)
    return f"CASE {' '.join(f'WHEN {a} THEN {b}' for a, b in arms)} ELSE {texts[-1]} END"


def case_of(texts):
    """CASE x WHEN a THEN b … END."""
    arms = zip(texts[1::2], texts[2::2], strict=True)
    return f"CASE {texts[0]} {' '.join(f'WHEN {a} THEN {b}' for a, b in arms)} END"


def in_list(word, unnest=""):
    opening, closing = (f"{unnest}([", "])") if unnest else ("(", ")")
    return lambda texts: f"{texts[0]} {word} {opening}{', '.join(texts[1:])}{closing}"


def concat(texts):
    return f"({' || '.join(texts)})"


# --- numbers; the generator keeps these from overflowing ---

ADD = left("+", "+", PLUS)
SUBTRACT = left("-", "-", PLUS)
MULTIPLY = left("*", "*", TIMES)
# GoogleSQL's / is always of floats; SQLite's is DIV where both are integers. NULL for a zero: in
# GoogleSQL it is an error, in SQLite NULL already.
DIVIDE = Op("/", "{0} / NULLIF({1}, 0)", "CAST({0} AS REAL) / NULLIF({1}, 0)", TIMES,
            (TIMES, ANY_LEVEL))  # fmt: skip
NEGATE = Op("-x", "- {0}", "-({0})", UNARY, (UNARY,))
PLUS_SIGN = Op("+x", "+ {0}", "+({0})", UNARY, (UNARY,))
NEGATE_BITS = Op("~", "~ {0}", None, UNARY, (UNARY,))
BITS_AND = left("&", "&", AND_BITS)
BITS_OR = left("|", "|", OR_BITS)
# SQLite has no XOR.
BITS_XOR = left("^", "^", XOR_BITS, "({0} | {1}) & ~({0} & {1})")
SHIFT_LEFT = left("<<", "<<", SHIFT)
# GoogleSQL shifts zeros in, SQLite the sign.
SHIFT_RIGHT = left(">>", ">>", SHIFT, "g_shift_right({0}, {1})")
# SQLite makes a float of a sum that overflows: then it is NULL.
SAFE_ADD = call("SAFE_ADD", "g_if_integer({0} + {1})")
SAFE_SUBTRACT = call("SAFE_SUBTRACT", "g_if_integer({0} - {1})")
SAFE_MULTIPLY = call("SAFE_MULTIPLY", "g_if_integer({0} * {1})")
SAFE_NEGATE = call("SAFE_NEGATE", "g_if_integer(0 - {0})")
SAFE_DIVIDE = call("SAFE_DIVIDE", "(CAST({0} AS REAL) / {1})")
DIV = Op("DIV", "DIV({0}, NULLIF({1}, 0))", "({0} / {1})")
MOD = Op("MOD", "MOD({0}, NULLIF({1}, 0))", "({0} % {1})")
ABS = call("ABS")
SIGN = call("SIGN", "sign({0})")
SIGN_FLOAT = call("SIGN", "CAST(sign({0}) AS REAL)")
GREATEST = call("GREATEST", "max({*})")
LEAST = call("LEAST", "min({*})")
BIT_COUNT = call("BIT_COUNT", "g_bit_count({0})")
ROUND = call("ROUND")
# GoogleSQL gives floats for integers, too; SQLite integers.
CEIL = call("CEIL", "CAST(ceil({0}) AS REAL)")
FLOOR = call("FLOOR", "CAST(floor({0}) AS REAL)")
TRUNC = call("TRUNC", "CAST(trunc({0}) AS REAL)")
SQRT = Op("SQRT", "SQRT(ABS({0}))", "sqrt(abs({0}))")

# --- types ---

INT_TO_FLOAT = Op("CAST AS FLOAT64", "CAST({0} AS FLOAT64)", "CAST({0} AS REAL)")
# What GoogleSQL coerces; in SQLite an integer stays one.
COERCED = Op("coerced", "{0}", "CAST({0} AS REAL)", needs=(0,))
# GoogleSQL rounds half away from zero, SQLite cuts off.
FLOAT_TO_INT = Op("CAST AS INT64", "CAST({0} AS INT64)", "CAST(round({0}) AS INTEGER)")
BOOL_TO_INT = Op("CAST AS INT64", "CAST({0} AS INT64)", "CAST({0} AS INTEGER)")
INT_TO_BOOL = Op("CAST AS BOOL", "CAST({0} AS BOOL)", "({0} <> 0)")
INT_TO_STRING = Op("CAST AS STRING", "CAST({0} AS STRING)", "CAST({0} AS TEXT)")
# SQLite has no type for truth.
BOOL_TO_STRING = Op("CAST AS STRING", "CAST({0} AS STRING)",
                    "CASE {0} WHEN 1 THEN 'true' WHEN 0 THEN 'false' END")  # fmt: skip
STRING_TO_BYTES = Op("CAST AS BYTES", "CAST({0} AS BYTES)", "CAST({0} AS BLOB)")
# SQLite takes a number's beginning for the number.
STRING_TO_INT = Op("SAFE_CAST AS INT64", "SAFE_CAST({0} AS INT64)", "g_safe_int({0})")
# SQLite's texts end at a zero.
BYTES_TO_STRING = Op("SAFE_CAST AS STRING", "SAFE_CAST(REPLACE({0}, b'\\x00', b'.') AS STRING)",
                     "g_safe_text(g_replace_bytes({0}, x'00', '.'))")  # fmt: skip

# --- conditions of any type ---

IF = call("IF", "iif({*})")
IFNULL = call("IFNULL")
COALESCE = call("COALESCE")
NULLIF = call("NULLIF")
CASE = Op("CASE WHEN", case)
CASE_OF = Op("CASE x WHEN", case_of)

EQUAL = compare("=", "{0} = {1}")
UNEQUAL = compare("!=", "{0} != {1}")
UNEQUAL_2 = compare("<>", "{0} <> {1}")
LESS = compare("<", "{0} < {1}")
AT_MOST = compare("<=", "{0} <= {1}")
MORE = compare(">", "{0} > {1}")
AT_LEAST = compare(">=", "{0} >= {1}")
COMPARISONS = [EQUAL, UNEQUAL, UNEQUAL_2, LESS, AT_MOST, MORE, AT_LEAST]
DISTINCT_FROM = compare("IS DISTINCT FROM", "{0} IS DISTINCT FROM {1}", "{0} IS NOT {1}")
NOT_DISTINCT_FROM = compare("IS NOT DISTINCT FROM", "{0} IS NOT DISTINCT FROM {1}", "{0} IS {1}")
IS_NULL = compare("IS NULL", "{0} IS NULL")
IS_NOT_NULL = compare("IS NOT NULL", "{0} IS NOT NULL")
BETWEEN = compare("BETWEEN", "{0} BETWEEN {1} AND {2}")
NOT_BETWEEN = compare("NOT BETWEEN", "{0} NOT BETWEEN {1} AND {2}")
IN = compare("IN", in_list("IN"), in_list("IN"))
NOT_IN = compare("NOT IN", in_list("NOT IN"), in_list("NOT IN"))
IN_UNNEST = compare("IN UNNEST", in_list("IN", "UNNEST"), in_list("IN"))
NOT_IN_UNNEST = compare("NOT IN UNNEST", in_list("NOT IN", "UNNEST"), in_list("NOT IN"))

# Structs; SQLite's are rows, and those of IN a query's, in which there are no aggregates.
SAME_PAIRS = compare("STRUCT =", "({0}, {1}) = ({2}, {3})")
OTHER_PAIRS = compare("STRUCT !=", "({0}, {1}) != ({2}, {3})")
PAIR_IN = compare("STRUCT IN", "({0}, {1}) IN (({2}, {3}), ({4}, {5}))",
                  "({0}, {1}) = ({2}, {3}) OR ({0}, {1}) = ({4}, {5})")  # fmt: skip

IS_TESTS = [
    compare(f"IS {word}", f"{{0}} IS {word}")
    for word in ["TRUE", "FALSE", "NOT TRUE", "NOT FALSE"]
] + [
    compare("IS UNKNOWN", "{0} IS UNKNOWN", "{0} IS NULL"),
    compare("IS NOT UNKNOWN", "{0} IS NOT UNKNOWN", "{0} IS NOT NULL"),
]
NOT_ = Op("NOT", "NOT {0}", None, NOT, (NOT,))
AND_ = left("AND", "AND", AND)
OR_ = left("OR", "OR", OR)

# --- texts and bytes ---

CONCAT_SIGN = left("||", "||", TIMES)
CONCAT = call("CONCAT", concat)
# SQLite's || makes a text of two blobs.
CONCAT_SIGN_BYTES = left("||", "||", TIMES, "CAST({0} || {1} AS BLOB)")
CONCAT_BYTES = call("CONCAT", lambda texts: f"CAST({concat(texts)} AS BLOB)")
LENGTH = call("LENGTH")
CHAR_LENGTH = call("CHAR_LENGTH", "length({0})")
BYTE_LENGTH = call("BYTE_LENGTH", "length(CAST({0} AS BLOB))")
STRPOS = call("STRPOS", "instr({0}, {1})")
INSTR = call("INSTR")
INSTR_4 = call("INSTR", "g_instr({*})")
# The same for a position from 1 and a length, or a position without a length; GoogleSQL's position
# before the beginning is 1, while SQLite's eats up some of the length.
SUBSTR = call("SUBSTR")
SUBSTR_ANY = call("SUBSTR", "g_substr({*})")
# SQLite has NULL for a part of an empty blob.
SUBSTR_BYTES = call("SUBSTR", lambda texts: (
    f"CASE WHEN length({texts[0]}) = 0 THEN {texts[0]} ELSE substr({', '.join(texts)}) END"
))  # fmt: skip
LEFT = call("LEFT", "substr({0}, 1, {1})")
LEFT_BYTES = call("LEFT", "CASE WHEN length({0}) = 0 THEN {0} ELSE substr({0}, 1, {1}) END")
RIGHT = call("RIGHT", "g_right({0}, {1})")
# SQLite knows no case but ASCII's.
UPPER = call("UPPER", "g_upper({0})")
LOWER = call("LOWER", "g_lower({0})")
UPPER_BYTES = call("UPPER", "CAST(upper({0}) AS BLOB)")
# SQLite gives the text as it is where the second is empty, even if the third is NULL.
REPLACE = call("REPLACE", "CASE WHEN {2} IS NOT NULL THEN replace({0}, {1}, {2}) END")
TRIM = call("TRIM")
LTRIM = call("LTRIM")
RTRIM = call("RTRIM")
# Without a set of characters GoogleSQL takes off all white space, SQLite blanks.
SPACE_TRIMS = [call(name, f"g_{name.lower()}({{0}})") for name in ["TRIM", "LTRIM", "RTRIM"]]
REVERSE = call("REVERSE", "g_reverse({0})")
REPEAT = call("REPEAT", "g_repeat({*})")
LPAD = call("LPAD", "g_lpad({*})")
RPAD = call("RPAD", "g_rpad({*})")
TRANSLATE = call("TRANSLATE", "g_translate({*})")
# SQLite's hex(NULL) is empty.
TO_HEX = call("TO_HEX", "CASE WHEN {0} IS NOT NULL THEN lower(hex({0})) END")
FROM_HEX = Op("FROM_HEX", "FROM_HEX(TO_HEX({0}))", "{0}")
SPLIT = Op("SPLIT", "SPLIT({0}, {1})[SAFE_OFFSET({2})]", "g_split({*})")
# SQLite prints a NULL as 0 or as nothing.
FORMAT = Op("FORMAT", "FORMAT({0}, {1}, {2})",
            "CASE WHEN {1} IS NOT NULL AND {2} IS NOT NULL "
            "THEN printf({0}, {1}, {2}) END")  # fmt: skip
UNICODE = call("UNICODE", "CASE {0} WHEN '' THEN 0 ELSE unicode({0}) END")
SHA1 = call("SHA1", "g_sha1({0})")
MD5 = call("MD5", "g_md5({0})")
# ESCAPE: GoogleSQL always has the backslash. _ is a byte of BYTES; SQLite's LIKE knows no blobs.
LIKE = compare("LIKE", "{0} LIKE {1}", "{0} LIKE {1} ESCAPE '\\'")
NOT_LIKE = compare("NOT LIKE", "{0} NOT LIKE {1}", "{0} NOT LIKE {1} ESCAPE '\\'")
LIKE_BYTES = compare("LIKE bytes", "{0} LIKE {1}", "g_like({0}, {1})")
NOT_LIKE_BYTES = compare("NOT LIKE bytes", "{0} NOT LIKE {1}", "NOT g_like({0}, {1})")
STARTS_WITH = call("STARTS_WITH", "(substr({0}, 1, length({1})) = {1})")
STARTS_WITH_BYTES = call("STARTS_WITH", "g_starts_with({*})")
ENDS_WITH = call("ENDS_WITH", "g_ends_with({*})")
REGEXP_CONTAINS = call("REGEXP_CONTAINS", "g_regexp({*})")
REGEXP_REPLACE = call("REGEXP_REPLACE", "g_regexp_replace({*})")


def like_any(word, joint):
    """SQLite has LIKE with one pattern only."""
    return compare(
        f"LIKE {word}",
        lambda texts: f"{texts[0]} LIKE {word} ({', '.join(texts[1:])})",
        lambda texts: joint.join(f"({texts[0]} LIKE {each} ESCAPE '\\')" for each in texts[1:]),
    )


LIKE_ANY = like_any("ANY", " OR ")
LIKE_ALL = like_any("ALL", " AND ")

# --- aggregates ---

COUNT_ALL = Op("COUNT(*)", "COUNT(*)")
COUNT = call("COUNT")
COUNT_DISTINCT = Op("COUNT(DISTINCT)", "COUNT(DISTINCT {0})")
# Arrays: how many, the least (NULL before all), the greatest.
AGG_LENGTH = Op("ARRAY_AGG", "ARRAY_LENGTH(ARRAY_AGG({0}))", "nullif(count(*), 0)")
AGG_FIRST = Op("ARRAY_AGG ORDER BY", "ARRAY_AGG({0} ORDER BY {0} LIMIT 2)[SAFE_OFFSET(0)]",
               "CASE WHEN count({0}) = count(*) THEN min({0}) END")  # fmt: skip
AGG_LAST = Op(
    "ARRAY_AGG IGNORE NULLS",
    "ARRAY_AGG({0} IGNORE NULLS ORDER BY {0} DESC)[SAFE_OFFSET(0)]",
    "max({0})",
)
ANY_VALUE = Op("ANY_VALUE HAVING", "ANY_VALUE({0} HAVING MAX {0})", "max({0})")
COUNTIF = call("COUNTIF", "count(CASE WHEN {0} THEN 1 END)")
SUM = call("SUM")
SUM_DISTINCT = Op("SUM(DISTINCT)", "SUM(DISTINCT {0})")
AVG = call("AVG")
AVG_DISTINCT = Op("AVG(DISTINCT)", "AVG(DISTINCT {0})")
MIN = call("MIN")
MAX = call("MAX")
LOGICAL_AND = call("LOGICAL_AND", "min({0})")
LOGICAL_OR = call("LOGICAL_OR", "max({0})")
BIT_AGGREGATES = [
    call(f"BIT_{name}", f"g_bit_{name.lower()}({{0}})") for name in ["AND", "OR", "XOR"]
]


def string_agg_op(direction, limit, is_distinct, by_array):
    """In the order of a key, then of the values. SQLite 3.40's group_concat knows no order.
    `by_array`: the same by an array of texts, which is as empty as the group."""
    order = f" ORDER BY {{0}}{direction}" if is_distinct else f" ORDER BY {{2}}{direction}, {{0}}"
    distinct = "DISTINCT " if is_distinct else ""
    most = f" LIMIT {limit}" if limit else ""
    google = f"STRING_AGG({distinct}{{0}}, {{1}}{order}{most})"
    if by_array:
        google = f"ARRAY_TO_STRING(ARRAY_AGG({distinct}{{0}} IGNORE NULLS{order}{most}), {{1}})"
    return Op(
        "ARRAY_TO_STRING" if by_array else "STRING_AGG",
        google,
        f"g_string_agg({{0}}, {{1}}, {{2}}, '{direction}', {limit}, {int(is_distinct)})",
    )


# --- what may fail: used where it must fail on both sides, or on none (errors.py) ---


def strict(op, sqlite):
    return Op(op.name + " or error", op.google, sqlite, op.level, op.needs)


STRICT_INT = {
    "add": strict(ADD, "g_integer({0} + {1})"),
    "subtract": strict(SUBTRACT, "g_integer({0} - {1})"),
    "multiply": strict(MULTIPLY, "g_integer({0} * {1})"),
    "negate": strict(NEGATE, "g_integer(0 - ({0}))"),
    "abs": strict(ABS, "g_integer(abs({0}))"),
    "div": Op("DIV or error", "DIV({0}, {1})", "g_div({0}, {1})"),
    "mod": Op("MOD or error", "MOD({0}, {1})", "g_mod({0}, {1})"),
    "shift": Op(">> or error", "{0} >> {1}", "g_shift_right({0}, {1})", SHIFT, (SHIFT, PLUS)),
    "cast": Op("CAST AS INT64 or error", "CAST({0} AS INT64)", "g_int({0})"),
}
STRICT_DIVIDE = Op("/ or error", "{0} / {1}", "g_divide({0}, {1})", TIMES, (TIMES, UNARY))
STRICT_TEXT = Op("CAST AS STRING or error", "CAST({0} AS STRING)", "g_text({0})")
STRICT_SUBSTR = Op("SUBSTR or error", "SUBSTR({*})", "g_substr({*})")
STRICT_SUM = Op("SUM or error", "SUM({0})", "g_sum({0})")
