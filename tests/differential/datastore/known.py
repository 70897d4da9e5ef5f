"""What is known to differ, each with its reason. A rule says of one field of one answer whether
the difference is the one that it knows; rules are as narrow as can be, and a run counts how often
each was used."""

import collections
import json
import re

from differential.datastore.operations import key_of

Case = collections.namedtuple("Case", "side operation field ours theirs")
Case.__doc__ = """A difference: `field` of the answers to `operation`; `side` is the
emulator's name, `ours` and `theirs` are whole answers."""

RULES = []
BOTH = ("classic", "firestore")


class Rule:
    def __init__(self, test, sides, field):
        self.test, self.sides, self.field = test, sides, field
        self.name, self.why = test.__name__, " ".join(test.__doc__.split())

    def knows(self, case):
        fits = case.side in self.sides and self.field in (None, case.field)
        return fits and bool(self.test(case))


def rule(sides=BOTH, field=None):
    """Makes a function of a case a rule: it says whether the case is this one. Its text is why."""

    def add(test):
        RULES.append(Rule(test, sides, field))
        return test

    return add


def known(case):
    """The name of the rule that knows the difference; None if there is none."""
    return next((each.name for each in RULES if each.knows(case)), None)


def table():
    """The rules as README.md has them."""
    sides = {BOTH: "both", ("classic",): "classic", ("firestore",): "Datastore mode"}
    rows = [f"| `{each.name}` | {sides[each.sides]} | {each.why} |" for each in RULES]
    return "\n".join(["| rule | emulator | difference |", "|---|---|---|", *rows])


def may_be_unlike(side, operation):
    """Whether a write leaves something else there, though the answers are alike: see the rules on
    masks, transforms, backquotes and transactions."""
    mutations = operation["request"]["mutations"]
    changes = [each for each in mutations if {"propertyMask", "propertyTransforms"} & set(each)]
    if side == "classic":
        return bool(changes) or is_told(operation)
    return "`" in json.dumps([each.get("propertyMask") for each in changes])


def is_told(operation):
    return bool(operation.get("story"))


def without_flags(thing):
    """An entity as Datastore mode's emulator has it after a transform: see firestore_flags."""
    if isinstance(thing, list):
        return [without_flags(each) for each in thing]
    if not isinstance(thing, dict):
        return thing
    return {
        name: without_flags(value) for name, value in thing.items() if name != "excludeFromIndexes"
    }


def may_be_in_part(side, operation):
    """Whether the emulators write what comes before the mutation that they refuse: a commit of the
    server is all or nothing in either mode, and the API asks for no less. The classic one keeps it
    for the transaction's next commit, too."""
    request = operation["request"]
    parts = request.get("mode") != "TRANSACTIONAL" and len(request["mutations"]) > 1
    return parts or (side == "classic" and is_told(operation))


def refuses(case, words):
    """Whether the emulator refuses, in these words, what we do not refuse as it does."""
    return "error" in case.theirs and re.search(words, case.theirs["words"])


def refuses_as(case, words):
    """Whether both refuse, with the emulator's words beginning so."""
    return {"error"} <= set(case.ours) & set(case.theirs) and case.theirs["words"].startswith(
        words
    )


def accepts(case, words):
    """Whether the emulator answers what we refuse in these words."""
    return "error" not in case.theirs and re.search(words, case.ours.get("words", ""))


def has_failed(case):
    """Whether the emulator gave up for reasons of its own, without a word."""
    return case.theirs.get("error") == "UNKNOWN" and not case.theirs["words"]


def query_of(case):
    """As JSON; of GQL, what we have read in it."""
    request = case.operation["request"]
    asked = request.get("query") or request.get("aggregationQuery", {}).get("nestedQuery")
    if asked is None:
        asked = (case.ours.get("query") or {}) if isinstance(case.ours.get("query"), dict) else {}
        asked = asked.get("nestedQuery", asked)
    return asked


def text_of(case):
    return json.dumps(case.operation["request"], ensure_ascii=False)


def asks(case, *operators):
    """Whether one of the operators is in a filter of the query, or in its GQL."""
    text = text_of(case)
    signs = {"NOT_IN": "NOT IN ", "IN": " IN ", "NOT_EQUAL": "!=", "OR": " OR "}
    by_gql = "queryString" in text
    return any(signs[op] in text if by_gql else f'"op": "{op}"' in text for op in operators)


def mutations_have(case, *fields):
    return any(set(fields) & set(each) for each in case.operation["request"].get("mutations", ()))


def is_in_transaction(case):
    return is_told(case.operation)


def flat(results):
    """Those of all pages."""
    pages = results if results and isinstance(results[0], list) else [results]
    return [each for page in pages for each in page]


def unmarked(results):
    """Of all pages, without versions and the meanings of what is projected."""
    return [re.sub(r" v[-+=?0]$|~18", "", each) for each in flat(results)]


def has_array(case, name="t"):
    """Whether the query is about the property that has arrays mostly."""
    asked = query_of(case)
    text = text_of(case).split("queryString")[-1] if "queryString" in text_of(case) else ""
    return f'"name": "{name}"' in json.dumps(asked) or bool(re.search(rf"\b{name}\b", text))


# --- both ---


def without_ends(more):
    each = more if isinstance(more, list) else [more]
    return ["NO_MORE_RESULTS" if one.startswith("MORE_RESULTS_AFTER_") else one for one in each]


@rule(field="more")
def more_at_the_end(case):
    """Whether a limit or a cursor is said to be reached, or that there is no more: the classic
    emulator always says the limit, Datastore mode's looks for one result more than we do."""
    are_queries = isinstance(case.ours["more"], (str, list))
    return are_queries and without_ends(case.ours["more"]) == without_ends(case.theirs["more"])


@rule(field="error")
def key_order_projected(case):
    """An order by the key, and results that are projected: it would need an index by the key,
    which there cannot be."""
    return accepts(case, "^A query that is ordered by __key__ must be ordered by all projected")


@rule(field="error")
def our_locks(case):
    """With --concurrency pessimistic our transactions lock what they read: who comes second waits,
    and is refused."""
    return case.operation.get("conflict") and accepts(case, "^Transaction lock timeout")


@rule(field="error")
def zero_ids(case):
    """An id of 0 asks for one that is allocated, as Google's page on best practices has it."""
    return refuses(case, "^Key path id is invalid. Must not be zero")


@rule(field="words")
def zero_id_words(case):
    """The same, where it must be complete: it is said to be incomplete."""
    return refuses_as(case, "Key path id is invalid. Must not be zero.")


@rule(field="words")
def allocated_words(case):
    """A key with several faults: which is told."""
    both = (case.ours["words"], case.theirs["words"])
    same = all(each.startswith("Key path element must not be") for each in both)
    return case.operation["rpc"] == "AllocateIds" and same


@rule()
def distinct_arrays(case):
    """DISTINCT ON an array, of whole entities: ours come once, at their first value, and then they
    are grouped; Google's are grouped first, and come once (classic) or once for each group."""
    text = text_of(case)
    groups = '"distinctOn": [{"name": "t"}' in text or re.search(r"DISTINCT ON \(t\b", text)
    return case.field in ("results", "more", "skipped", "values") and groups


# --- the classic emulator ---

CLASSIC = ("classic",)


@rule(CLASSIC, "error")
def classic_aggregations(case):
    """It has no RunAggregationQuery."""
    return case.theirs.get("error") == "UNIMPLEMENTED" and "Aggregation" in case.operation["rpc"]


@rule(CLASSIC, "error")
def classic_ancestors(case):
    """In its time, queries in a transaction had to have an ancestor."""
    return refuses(case, "^Only ancestor queries are allowed inside transactions")


@rule(CLASSIC, "error")
def classic_operators(case):
    """It refuses NOT_IN, OR and more than one IN, and fails at NOT_EQUAL."""
    words = "^(Unrecognized PropertyFilter.op|Filter has|unsupported composite|Only a single)"
    asked = asks(case, "NOT_IN", "OR", "IN", "NOT_EQUAL")
    return asked and (refuses(case, words) or has_failed(case))


@rule(CLASSIC, "error")
def classic_ranges(case):
    """It allows a range of one property alone, which must be the first of the order."""
    return "error" not in case.ours and refuses(
        case,
        "^(Only one inequality filter|The first sort property must|Inequality filter on)",
    )


@rule(CLASSIC, "found")
def classic_masks(case):
    """It reads whole entities whatever the mask says."""

    def keys(found):
        return [each.split("{")[0] for each in found]

    masked = "propertyMask" in case.operation["request"]
    return masked and keys(case.ours["found"]) == keys(case.theirs["found"])


@rule(field="results")
def projected_meanings(case):
    """What is projected has meaning 18 and is an integer, a double or a string, whatever it was;
    ours has its type, and the meaning of a timestamp; of -0.0 it is 0.0, as in the index."""

    def without(results):
        return re.sub(r" v[-+=?0]|~18|\bb(?=['\"])|-(?=0\.0\b)", "", repr(flat(results)))

    return case.ours.get("type") == "PROJECTION" and without(case.ours["results"]) == without(
        case.theirs["results"]
    )


@rule(field="words")
def gql_expected(case):
    """An error in the text of a query names other tokens that it could go on with, and tells of
    numbers that cannot be in other words."""
    both = (case.ours["words"], case.theirs["words"])
    syntax = (
        "Encountered", "Lexical error", "Disallowed literal", "The offset", "Offset must",
        "The limit", "Limit must", "The integer does not fit", "Invalid integer literal",
        "A datetime must be", "Invalid datetime text", "Unused positional",
    )  # fmt: skip
    return "gqlQuery" in text_of(case) and all(each.startswith(syntax) for each in both)


@rule(field="words")
def cursor_words(case):
    """The cursor is not one: production's words are of how it encodes them."""
    return "Cursor" in text_of(case) and case.theirs["words"] == "Error parsing protocol message"


@rule(field="words")
def database_words(case):
    """Databases that are not the request's: they have names of their own in the words."""
    named = case.theirs["words"].startswith("mismatched databases within request: <unknown!>")
    return named or case.ours["words"].startswith("mismatched databases within request")


@rule(CLASSIC)
def classic_transforms(case):
    """It passes over property transforms, also over those that are none."""
    if not mutations_have(case, "propertyTransforms") or "error" in case.theirs:
        return False
    if "error" in case.ours:
        return case.ours["error"] == "INVALID_ARGUMENT"

    def without(results):
        return [" ".join(re.split(r" (?=v[-+=?0])", each)[:1]) for each in results]

    return without(case.ours["results"]) == without(case.theirs["results"])


@rule(CLASSIC)
def classic_twice(case):
    """A key is found, or missing, as often as it is asked for."""
    if case.operation["rpc"] != "Lookup" or case.field not in ("found", "missing"):
        return False
    return set(case.ours[case.field]) == set(case.theirs[case.field])


@rule(CLASSIC, "results")
def classic_empty_arrays(case):
    """An empty array is a null in its indexes."""
    if case.operation["rpc"] != "RunQuery":
        return False
    ours, theirs = unmarked(case.ours["results"]), unmarked(case.theirs["results"])
    is_limited = "limit" in text_of(case).lower()
    is_skipped = "offset" in text_of(case).lower() and theirs[-len(ours) :] == ours
    if case.ours["type"] == "FULL":
        common = [each for each in theirs if each in ours or "=[]" not in each]
    else:
        common = [each for each in theirs if each in ours]
    is_part = ours == common or (is_limited and ours[: len(common)] == common)
    return (
        len(common) < len(theirs)
        and (is_part or is_skipped)
        or len(ours) < len(theirs)
        and (is_skipped)
    )


@rule(CLASSIC, "skipped")
def classic_skips(case):
    """So it may be one of those that are skipped."""
    skipped = sum(flat([case.theirs["skipped"]])) - sum(flat([case.ours["skipped"]]))
    return skipped > 0 and case.ours["results"] == case.theirs["results"]


@rule(CLASSIC, "results")
def classic_masked_versions(case):
    """A mask that leaves all as it was makes a new version."""
    alike = json.dumps(case.ours["results"]).replace(" v=", " v+") == json.dumps(
        case.theirs["results"]
    ).replace(" v=", " v+")
    return mutations_have(case, "propertyMask", "propertyTransforms") and alike


@rule(CLASSIC)
def classic_conflicts(case):
    """A conflict is one of all mutations of an entity, also of those that want no version."""
    keys = [json.dumps(key_of(each)) for each in case.operation["request"].get("mutations", ())]
    return mutations_have(case, "baseVersion") and len(set(keys)) < len(keys)


@rule(CLASSIC, "error")
def classic_order_of_checks(case):
    """It looks whether entities are there before it looks at the request as a whole."""
    presence = case.theirs.get("error") in ("NOT_FOUND", "ALREADY_EXISTS")
    return case.operation["rpc"] == "Commit" and presence and "error" in case.ours


@rule(CLASSIC, "error")
def classic_reserved_masks(case):
    """It does not look at masks of lookups for reserved names."""
    return case.operation["rpc"] == "Lookup" and accepts(case, "^the name .* is reserved")


@rule(CLASSIC, "error")
def classic_goes_on(case):
    """It takes a transaction whose commit has failed, with what was written before that."""
    gone = ("Invalid transaction", "The referenced transaction", "Cannot modify")
    return is_in_transaction(case) and case.ours.get("words", "").startswith(gone)


@rule(CLASSIC, "error")
def classic_ends(case):
    """What fails in a transaction ends it, and reads of what is ended fail."""
    gone = refuses(case, "^(Invalid transaction|transaction has expired)")
    return is_in_transaction(case) and (gone or has_failed(case))


@rule(CLASSIC, "error")
def classic_contention(case):
    """A transaction cannot read a group that was written after its beginning."""
    return is_in_transaction(case) and case.theirs.get("error") == "ABORTED"


@rule(CLASSIC, "error")
def classic_read_time(case):
    """It does not look at read_time."""
    return "readTime" in text_of(case) and accepts(case, "The requested 'read_time'")


@rule(CLASSIC, "error")
def classic_arrays(case):
    """It takes an array in an array."""
    return accepts(case, "^list_value cannot contain")


@rule(CLASSIC, "error")
def classic_ancestor_twice(case):
    """It allows HAS_ANCESTOR once, though it were the same ancestor."""
    return refuses(case, "^duplicate ancestor or parent constraint")


@rule(CLASSIC)
def classic_groups(case):
    """A transaction sees a group of entities as it is when it first reads of it."""
    is_read = case.field in ("found", "missing") and '"transaction"' in text_of(case)
    return is_in_transaction(case) and is_read


@rule(CLASSIC, "error")
def classic_group_orders(case):
    """It passes over orders of properties with equality filters before it looks at groups."""
    return accepts(case, "^must specify all group by orderings before any non group by")


@rule(CLASSIC, "results")
def classic_key_ranges(case):
    """A range of keys puts results in the order of keys, also those of a projection."""
    asked = query_of(case)
    ranges = re.search(r'"__key__"}, "op": "(LESS|GREATER)', json.dumps(asked))
    return case.ours.get("type") == "PROJECTION" and ranges and "order" not in asked


@rule(CLASSIC, "keys")
def classic_ids(case):
    """It allocates an id again that nobody has used."""
    return case.operation["rpc"] == "AllocateIds"


@rule(CLASSIC, "results")
def classic_projected_twice(case):
    """A projection in the order of an array that is not projected has a result for each value."""
    ours, theirs = unmarked(case.ours["results"]), unmarked(case.theirs["results"])
    of_array = case.ours.get("type") == "PROJECTION" and has_array(case)
    return of_array and list(dict.fromkeys(theirs)) == ours


@rule(CLASSIC, "error")
def classic_lost_transactions(case):
    """It fails at reads in transactions that nobody has begun, and at aggregations in GQL."""
    text = text_of(case)
    asked = '"transaction"' in text or "AGGREGATE" in text or "COUNT(" in text
    return asked and "error" in case.ours and has_failed(case)


@rule(CLASSIC, "error")
def classic_cursors(case):
    """It fails at cursors behind some values, without a word."""
    return "then" in case.operation and has_failed(case)


# --- Datastore mode's ---

FIRESTORE = ("firestore",)


@rule(FIRESTORE, "results")
def firestore_ties(case):
    """Results in a descending order have keys descending, too, where the order says nothing of
    them."""
    orders = query_of(case).get("order", [])
    return (
        orders
        and orders[-1].get("direction") == "DESCENDING"
        and not any(each["property"]["name"] == "__key__" for each in orders)
    )


@rule(FIRESTORE, "error")
def firestore_order_twice(case):
    """A property in the order twice is an error."""
    return refuses(case, "^order by clause cannot contain duplicate fields")


@rule(FIRESTORE, "error")
def firestore_groups(case):
    """Groups cannot be of a property with an equality filter."""
    return refuses(case, "^Cannot use group by on a property with an equality filter")


@rule(FIRESTORE, "error")
def firestore_kindless(case):
    """It takes projections without a kind, in no order that an index could have."""
    return accepts(case, "^kind is required for projections")


@rule(FIRESTORE)
def firestore_quotes(case):
    """A backquote in a path quotes a name; ours is a letter like others."""
    return "`" in text_of(case) and "propertyMask" in text_of(case)


@rule(FIRESTORE, "error")
def firestore_group_order(case):
    """Results and limits of groups follow the order of the groups alone."""
    return refuses(case, "^All group by properties must be ordered before any non group by")


@rule(field="error")
def gql_lists(case):
    """A list without ARRAY is no value of IN: ours takes it, as older GQL did."""
    return " IN (" in text_of(case) and refuses(case, '^Encountered " "\\("')


@rule(FIRESTORE, "error")
def firestore_ends(case):
    """What fails in a transaction may end it."""
    return is_in_transaction(case) and refuses(case, "^Invalid transaction")


@rule(FIRESTORE, "error")
def firestore_gone_versions(case):
    """What was deleted has the version of that; with us it has none, as if it had never been."""
    conflict = "FAILED_PRECONDITION" in (case.theirs.get("error"), case.ours.get("error"))
    ours = case.ours.get("words", "").startswith(("no entity to update", "the stored version (0)"))
    return conflict and ours and mutations_have(case, "baseVersion")


@rule(FIRESTORE, "error")
def firestore_unchecked(case):
    """It does not look in aggregations for operators that exclude each other."""
    words = "^('NOT_IN' cannot be used|Only a single 'NOT_EQUAL')"
    return "Aggregation" in case.operation["rpc"] and accepts(case, words)


@rule(FIRESTORE, "results")
def firestore_flags(case):
    """A number that was excluded from indexes is not after a transform."""
    if not mutations_have(case, "propertyTransforms"):
        return False
    return [each.replace("!", "") for each in case.ours["results"]] == case.theirs["results"]


@rule(FIRESTORE, "results")
def firestore_twice(case):
    """An entity whose array has several of the values comes several times."""
    if case.operation["rpc"] != "RunQuery":
        return False
    ours, theirs = unmarked(case.ours["results"]), unmarked(case.theirs["results"])
    once = list(dict.fromkeys(theirs))
    may_be = [each for each in once if theirs.count(each) > 1 or each not in ours]
    are_arrays = all("=[" in each for each in may_be) or has_array(case)
    is_skipped = "offset" in text_of(case).lower() and set(ours) <= set(theirs)
    return bool(may_be) and are_arrays and (once == ours[: len(once)] or is_skipped)


@rule(FIRESTORE, "results")
def firestore_excluded(case):
    """What is in an entity that is excluded from indexes is indexed nevertheless."""
    if case.operation["rpc"] != "RunQuery" or not has_array(case, "e.x"):
        return False
    ours, theirs = unmarked(case.ours["results"]), unmarked(case.theirs["results"])
    without = [each for each in theirs if each in ours or "}!" not in each]
    are_parts = case.ours["type"] != "FULL" and set(ours) <= set(theirs)
    return are_parts or ours[: len(without)] == without


@rule(FIRESTORE, "values")
def firestore_excluded_counts(case):
    """So it is counted."""
    return has_array(case, "e.x")


@rule(FIRESTORE, "skipped")
def firestore_excluded_skips(case):
    """So it may be one of those that are skipped."""
    return "offset" in text_of(case).lower() and has_array(case, "e.x")


@rule(FIRESTORE, "error")
def firestore_sequence(case):
    """It looks at what may follow what before it looks whether entities are there."""
    presence = case.ours.get("error") in ("NOT_FOUND", "ALREADY_EXISTS")
    return presence and refuses(case, r"^Cannot \w+ then \w+ an entity in the same request")


@rule(FIRESTORE, "error")
def firestore_versions_alike(case):
    """Of mutations of an entity either all want a version, in one way, or none."""
    return refuses(case, "^Mutations for the same entity must have the same")


@rule(field="error")
def inserted_versions(case):
    """They look at one mutation after the other: that an insert has a version comes later."""
    ours = case.ours.get("words", "").startswith("Cannot insert an entity with a base version")
    theirs = case.theirs.get("error") in ("NOT_FOUND", "ALREADY_EXISTS", "FAILED_PRECONDITION")
    return ours and theirs


@rule(FIRESTORE)
def firestore_one_key(case):
    """A query for one key leaves an entity out that lacks a property of the order; with us, and in
    the classic emulator, there is nothing to put in order."""
    filters = json.dumps(query_of(case).get("filter"))
    asked = re.search('"__key__"}, "op": "EQUAL"', filters) and query_of(case).get("order")
    return case.field in ("results", "skipped", "values") and asked


@rule(FIRESTORE, "values")
def firestore_counts_twice(case):
    """So it is counted several times."""
    counted = [each for each in case.ours["values"].values() if each.isdigit()]
    return counted and has_array(case)


@rule(FIRESTORE, "skipped")
def firestore_skips_twice(case):
    """And skipped."""
    return "offset" in text_of(case).lower() and has_array(case)


@rule(FIRESTORE, "error")
def firestore_projected_arrays(case):
    """It fails at some projections."""
    return refuses(case, "^index data should not include primary key")


@rule(FIRESTORE, "error")
def firestore_reserved_projections(case):
    """Properties with reserved names cannot be projected; with us, they are in no entity."""
    return refuses(case, "^projections are not supported for the property: __")


@rule(FIRESTORE, "error")
def firestore_arrays(case):
    """It removes and appends arrays, though no array can hold one."""
    return mutations_have(case, "propertyTransforms") and accepts(
        case, "^list_value cannot contain"
    )


@rule(FIRESTORE, "error")
def firestore_reserved(case):
    """It transforms properties with reserved names."""
    return mutations_have(case, "propertyTransforms") and accepts(
        case, "^The property.name .* reserved"
    )


@rule(FIRESTORE, "more")
def firestore_more(case):
    """Aggregations do not say whether there is more."""
    return (case.ours["more"], case.theirs["more"]) == (3, 0)


@rule(FIRESTORE, "results")
def firestore_versions(case):
    """Results of projections have versions."""

    def without(results):
        return re.sub(" v[-+=]", " v0", json.dumps(results))

    return case.ours.get("type", "FULL") != "FULL" and without(case.ours["results"]) == without(
        case.theirs["results"]
    )


@rule(FIRESTORE, "results")
def firestore_conflicts(case):
    """A conflict of versions is not told, and without a strategy is none."""
    return mutations_have(case, "baseVersion") and "conflict" in json.dumps(case.ours["results"])


@rule(FIRESTORE, "results")
def firestore_deletes(case):
    """Deleting what is not there, or only within the commit, gives it no new version."""
    mutations = case.operation["request"].get("mutations", [])
    gone = [json.dumps(each["delete"]) for each in mutations if "delete" in each]
    pairs = zip(mutations, case.ours["results"], case.theirs["results"], strict=False)
    wrong = [(each, ours, theirs) for each, ours, theirs in pairs if ours != theirs]
    return bool(wrong) and all(
        json.dumps(key_of(each)) in gone and ours.replace("v+", "v=") == theirs
        for each, ours, theirs in wrong
    )


@rule(FIRESTORE)
def firestore_key_order(case):
    """An order by the key does not end the order: what lacks a property behind it is left out,
    as in no index that there could be."""
    names = [each["property"]["name"] for each in query_of(case).get("order", [])]
    return "__key__" in names[:-1] or re.search(r"ORDER BY .*__key__( DESC)?,", text_of(case))


@rule(FIRESTORE, "values")
def firestore_sums(case):
    """It sums up timestamps as numbers, and has each index that it wants, where ours reads entities
    in the order of keys."""
    return re.search(r'"(sum|avg)"|(SUM|AVG)\(', text_of(case))


@rule(FIRESTORE, "error")
def firestore_rollback(case):
    """A transaction that has ended can be rolled back."""
    return case.operation["rpc"] == "Rollback" and accepts(case, "transaction")


@rule(FIRESTORE, "error")
def firestore_locks(case):
    """Its transactions lock what they read, ours do not: who comes second waits, and is
    refused."""
    return case.operation.get("conflict") and refuses(
        case, "^(Transaction lock timeout|Invalid trans)"
    )


@rule(FIRESTORE, "error")
def firestore_read_only(case):
    """A transaction that only reads cannot be committed."""
    empty = not case.operation["request"].get("mutations")
    return empty and refuses(case, "^Cannot modify entities in a read-only transaction")


@rule(FIRESTORE, "error")
def firestore_goes_on(case):
    """A commit that fails does not end its transaction."""
    gone = case.ours.get("words", "").startswith(
        ("Invalid transaction", "The referenced transaction")
    )
    return is_in_transaction(case) and gone


@rule(FIRESTORE, "error")
def firestore_eventual(case):
    """It knows no eventual consistency."""
    return refuses(case, "does not support eventual consistency")


@rule(FIRESTORE, "error")
def firestore_reserve(case):
    """It wants an id to reserve."""
    return refuses(case, "^List of Ids to reserve cannot be empty")


@rule(FIRESTORE, "error")
def firestore_ranges(case):
    """It takes ranges of what comes after the key in the order: no index could serve that."""
    return accepts(case, "^The first sort property must be the same")


@rule(FIRESTORE, "error")
def firestore_fails(case):
    """It fails at some queries, and at reserving negative ids, without a word."""
    rpc = case.operation["rpc"]
    return ("Query" in rpc or rpc == "ReserveIds") and has_failed(case)
