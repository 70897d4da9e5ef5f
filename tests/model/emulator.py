"""Google's emulator as the other side, and what is known to differ there.

docs/reference/emulator_differences.md says of each difference why the model is right.
"""

import collections
import os
import shutil
import subprocess

from filters import contains, parts_of
from table import MISMATCH, NO_KEY, NO_MUTATIONS, Refused
from wire import Failed

PLACE = "/usr/lib/google-cloud-sdk/platform/bigtable-emulator/cbtemulator"
UNKNOWN = 2
NAMING = "family_name_regex_filter", "column_range_filter"
EVERYTHING = None


def find():
    """The emulator's program, or None."""
    given = os.environ.get("CBTEMULATOR")
    return given or (PLACE if os.path.exists(PLACE) else shutil.which("cbtemulator"))


class Emulator:
    def start(self):
        command = [find(), "-host", "127.0.0.1", "-port", "0"]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.host = self.process.stdout.readline().split()[-1]

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class NoDifferences:
    """Of Trestle."""

    has_microseconds = True
    has_gc_on_read = True
    has_views = True
    droppable_families = EVERYTHING
    counts = collections.Counter()

    def explain(self, _):
        return False

    def is_harmful(self, _):
        return False


class KnownDifferences:
    """Counts the differences that it knows. What would hide all else is left out of the stream:
    microseconds, collection on reading, and new families that sort before old ones."""

    has_microseconds = False
    has_gc_on_read = False
    has_views = False
    droppable_families = ["sum"]

    def __init__(self):
        self.counts = collections.Counter()

    def explain(self, difference):
        for name, applies in DIFFERENCES.items():
            if applies(difference):
                self.counts[name] += 1
                return True
        return False

    def is_harmful(self, request):
        """Whether nothing could be compared after it. Such a request is not sent."""
        for name, applies in HARMFUL.items():
            if applies(request):
                self.counts[name] += 1
                return True
        return False


# --- requests ---


def mutations_of(request):
    for entry in getattr(request, "entries", [request]):
        for name in ("mutations", "true_mutations", "false_mutations"):
            yield from getattr(entry, name, [])


def lacks_input(mutation):
    kind = mutation.WhichOneof("mutation")
    aggregates = kind in ("add_to_cell", "merge_to_cell")
    return aggregates and getattr(mutation, kind).input.WhichOneof("kind") is None


def has_kind(request, kind):
    return any(mutation.WhichOneof("mutation") == kind for mutation in mutations_of(request))


def is_of_client(mutation):
    return mutation.timestamp_origin == mutation.CLIENT_AUTO_GENERATED


def has_filter(request, *kinds):
    return any(contains(message, kind) for message in filters_of(request) for kind in kinds)


def has_negative_count(message):
    kind = message.WhichOneof("filter")
    counts = kind in ("cells_per_row_offset_filter", "cells_per_row_limit_filter")
    is_negative = counts and getattr(message, kind) < 0
    return is_negative or any(map(has_negative_count, parts_of(message)))


def filters_of(request):
    names = [name for name in ("filter", "predicate_filter") if hasattr(request, name)]
    return [getattr(request, name) for name in names]


# --- differences ---


def accepted(*texts):
    """The model refuses, for one of these reasons at least; the emulator does not."""

    def applies(difference):
        if not isinstance(difference.expected, Refused) or isinstance(difference.answered, Failed):
            return False
        reasons = difference.expected.reasons
        return any(text in reason for text in texts for _, reason in reasons)

    return applies


def is_of_unknown_code(difference):
    refused, answer = difference.expected, difference.answered
    return isinstance(refused, Refused) and isinstance(answer, Failed) and answer.code == UNKNOWN


def fails_with(text):
    return lambda d: isinstance(d.answered, Failed) and text in d.answered.text


def is_answer_of(kind):
    return lambda difference: difference.request.DESCRIPTOR.name == kind


def is_filtered_by(*kinds):
    """A difference in what a filter lets through, not in whether it is refused."""
    return lambda d: has_filter(d.request, *kinds) and not isinstance(d.expected, Refused)


def all_of(*conditions):
    return lambda difference: all(applies(difference) for applies in conditions)


def differing_cells(difference):
    """The cells of only one side, if both are rows."""
    sides = []
    for side in (difference.expected, difference.answered):
        rows = side.values() if isinstance(side, dict) else [side]
        sides.append({cell for row in rows for cell in row if hasattr(cell, "timestamp")}
                     if all(isinstance(row, list) for row in rows) else set())  # fmt: skip
    return sides[0] ^ sides[1], sides


def is_in_minimum_or_maximum(difference):
    cells, _ = differing_cells(difference)
    return bool(cells) and {cell.family for cell in cells} <= {"min", "max"}


def is_in_time_alone(difference):
    cells, sides = differing_cells(difference)
    plain = [{cell._replace(timestamp=0) for cell in side if cell in cells} for side in sides]
    return bool(cells) and plain[0] == plain[1]


HARMFUL = {
    "AddToCell or MergeToCell without an input crashes it": lambda request: any(
        map(lacks_input, mutations_of(request))
    ),
    "a negative count crashes it": lambda request: any(
        map(has_negative_count, filters_of(request))
    ),
    "a row without a key can be made, and not be read": lambda request: any(
        not getattr(entry, "row_key", True) for entry in getattr(request, "entries", [request])
    ),
}
DIFFERENCES = {
    "statistics do not count copies": lambda d: isinstance(d.expected, tuple),
    "value_bitmask_filter lets everything through": is_filtered_by("value_bitmask_filter"),
    "sink is taken for pass_all_filter": is_filtered_by("sink"),
    "cells_per_row filters see families in random order": is_filtered_by(
        "cells_per_row_limit_filter", "cells_per_row_offset_filter"
    ),
    "strip_value_transformer takes labels away": is_filtered_by("strip_value_transformer"),
    "a cell keeps one label": is_filtered_by("apply_label_transformer"),
    "interleaves lose copies": is_filtered_by("interleave"),
    "filters are accepted that production refuses": accepted(
        "Error in field", "filter", "Filter", "sink", "nested", "label", "must be true if set"
    ),
    "nothing to do is accepted": accepted(
        NO_MUTATIONS, "No rules provided", NO_KEY, "does not say what to do"
    ),
    "sizes are not limited": accepted("Row key is", "Column qualifier is", "rows_limit"),
    "types, kinds and timestamps of aggregates are not checked": accepted(
        MISMATCH, "column_qualifier", "imestamp", "input"
    ),
    "an unknown family can be named in a filter": all_of(
        accepted("family not found"), lambda d: has_filter(d.request, *NAMING)
    ),
    "a range that starts at its end is empty": accepted("start_key must be less than"),
    "an unknown family can be deleted": all_of(
        accepted("family not found"), lambda d: has_kind(d.request, "delete_from_family")
    ),
    "MergeToCell is not implemented": fails_with("only []bytes values are supported"),
    "timestamp_origin is not looked at": all_of(
        fails_with("invalid timestamp"), lambda d: any(map(is_of_client, mutations_of(d.request)))
    ),
    "the code is UNKNOWN": is_of_unknown_code,
    "a missing table has another text": fails_with("-missing"),
    "a request's cells get several times of the server": is_in_time_alone,
    "min and max overwrite": is_in_minimum_or_maximum,
    "entries of MutateRows fail with INTERNAL, and each by itself": all_of(
        is_answer_of("MutateRowsRequest"), lambda d: isinstance(d.answered, list)
    ),
}
NAMES = [*HARMFUL, *DIFFERENCES]
