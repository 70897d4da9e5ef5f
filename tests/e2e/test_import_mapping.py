"""`trestle import dynamodb` with a mapping file, and items that end: DynamoDB's TTL."""

import json
import time

import pytest
from harness.dynamo_exports import line, write_export
from harness.patience import PATIENCE_SECONDS
from test_import_dynamodb import EXPORTED_US, Importer

VIDEOS = {
    "row_key": "{VideoId}",
    "families": {"Comments": {"max_versions": 50}},
    "items": [
        {"where": {"SK": "Video"}, "family": "Video", "timestamp": "UploadDate"},
        {"where": {"SK": "VideoStats"}, "family": "Stats", "columns": {"Likes": "counter"}},
        {"where": {"SK": "VideoComment#*"}, "family": "Comments", "timestamp": "At",
         "others": {"qualifier": "Comment", "as": "json"}, "columns": {"SK": "drop"}},
    ],
}  # fmt: skip


def video(number):
    key = ("S", f"v{number:03}")
    at = 1694359308000 + number
    return [
        {"VideoId": key, "SK": ("S", "Video"), "Format": ("S", "webm"),
         "UploadDate": ("N", str(at))},
        {"VideoId": key, "SK": ("S", "VideoStats"), "Likes": ("N", "7")},
        *(
            {"VideoId": key, "SK": ("S", f"VideoComment#{i}"), "At": ("N", str(at + i)),
             "Text": ("S", f"comment {i}")}
            for i in range(3)
        ),
    ]  # fmt: skip


class MappingImporter(Importer):
    def use(self, mapping):
        (self.directory / "mapping.json").write_text(json.dumps(mapping))

    def command(self, source, *options):
        command = super().command(source, "--mapping", "mapping.json", *options)
        at = command.index("--partition-key")
        return command[:at] + command[at + 2 :]

    def cells(self):
        """{row key: [(family, qualifier, timestamp, value)]}"""
        return {
            key.decode(): [(c.family, c.qualifier.decode(), c.timestamp, c.value) for c in cells]
            for key, cells in self.rpc.read(self.table)
        }


@pytest.fixture
def importer(rpc, server, tmp_path, new_table_id):
    return MappingImporter(rpc, server.host, tmp_path, new_table_id())


def test_items_of_several_kinds_are_one_row(importer, tmp_path):
    importer.use(VIDEOS)
    items = [item for number in range(20) for item in video(number)]
    write_export(tmp_path / "export", [items[::2], items[1::2]])
    out = importer.run_well(tmp_path / "export", "--verify", "full")
    assert out == "100 items read, 100 written, 0 rejected\n100 rows compared, 0 different\n"
    rows = importer.cells()
    assert len(rows) == 20
    at = 1694359308003000
    comments = [
        ("Comments", "Comment", at + 1000 * i,
         json.dumps({"At": at // 1000 + i, "Text": f"comment {i}"}, separators=(",", ":")).encode())
        for i in (2, 1, 0)
    ]  # fmt: skip
    assert rows["v003"] == [
        *comments,
        ("Stats", "Likes", EXPORTED_US, (7).to_bytes(8, "big")),
        ("Video", "Format", at, b"webm"),
        ("Video", "UploadDate", at, str(at // 1000).encode()),
    ]
    families = importer.rpc.get_table(importer.table).column_families
    assert families["Comments"].gc_rule.max_num_versions == 50
    assert families["Video"].gc_rule.max_num_versions == 1


def test_cells_that_would_overwrite_each_other_are_rejected(importer, tmp_path):
    importer.use(VIDEOS)
    key = ("S", "v")
    comments = [
        {"VideoId": key, "SK": ("S", f"VideoComment#{i}"), "At": ("N", "1700000000")}
        for i in range(2)
    ]
    strange = {"VideoId": key, "SK": ("S", "Audio")}
    path = tmp_path / "items.json"
    path.write_text("".join(map(line, [*comments, strange])))
    done = importer.run(path)
    assert done.returncode == 1
    assert [(each["line"], each["reason"]) for each in importer.rejects()] == [
        (2, "one before it has the cell Comments:Comment of the row v at 1700000000000000"),
        (3, "no rule of the mapping is for this item"),
    ]
    assert json.loads(importer.rejects()[1]["record"]) == json.loads(line(strange))


def test_a_list_is_versions_of_a_cell(importer, tmp_path):
    importer.use({"row_key": "{k}", "families": {"log": {"max_versions": 3}},
                  "columns": {"l": {"as": "versions", "family": "log"}}})  # fmt: skip
    item = {"k": ("S", "k"), "l": ("L", [("S", "a"), ("N", "2"), ("S", "c")])}
    write_export(tmp_path / "export", [[item]])
    importer.run_well(tmp_path / "export", "--verify", "full")
    assert importer.cells() == {
        "k": [("log", "l", EXPORTED_US - 1000 * i, v) for i, v in enumerate((b"c", b"2", b"a"))]
    }


def test_two_attributes_in_one_cell_are_rejected(importer, tmp_path):
    importer.use({"row_key": "{k}", "items": [
        {"columns": {"a": {"qualifier": "x"}, "b": {"qualifier": "x"}}}]})  # fmt: skip
    path = tmp_path / "items.json"
    path.write_text(line({"k": ("S", "k"), "a": ("S", "1"), "b": ("S", "2")}))
    assert importer.run(path).returncode == 1
    [reject] = importer.rejects()
    assert reject["reason"].startswith("it has twice the cell item:x of the row k at ")


@pytest.mark.parametrize(
    "text, words",
    [
        ("{", "mapping.json:1:1: "),
        ('{"row_key": "{a}", "items": [{"colums": {}}]}',
         'mapping.json: items[0]: the name "colums" means nothing here'),
    ],
)  # fmt: skip
def test_a_wrong_mapping_is_refused_before_anything_is_read(importer, tmp_path, text, words):
    (tmp_path / "mapping.json").write_text(text)
    done = importer.run(tmp_path / "is-not-there")
    assert done.returncode == 1
    assert words in done.stderr


# --- items that end ---


def test_what_has_ended_is_left_out_and_the_rest_is_dated(importer, tmp_path):
    now = int(time.time())
    items = [
        {"k": ("S", "gone"), "End": ("N", str(now - 5)), "v": ("N", "1")},
        {"k": ("S", "soon"), "End": ("N", str(now + 3600)), "v": ("N", "2")},
        {"k": ("S", "never"), "v": ("N", "3")},
        {"k": ("S", "text"), "End": ("S", str(now - 5))},
        {"k": ("S", "ancient"), "End": ("N", str(now - 6 * 365 * 86400))},
    ]
    write_export(tmp_path / "export", [items])
    importer.partition_key = "k"
    command = Importer.command(
        importer, tmp_path / "export", "--ttl-attribute", "End", "--ttl-family", "brief:2h",
        "--verify", "full",
    )  # fmt: skip
    importer.command = lambda *_: command
    out = importer.run_well(None)
    assert out == (
        "5 items read, 4 written, 0 rejected\n1 items left out, because they had ended\n"
        "4 rows compared, 0 different\n"
    )
    rows = importer.cells()
    assert sorted(rows) == ["ancient", "never", "soon", "text"]
    dated = (now + 3600 - 7200) * 10**6
    assert rows["soon"] == [
        ("brief", "End", dated, str(now + 3600).encode()),
        ("brief", "v", dated, b"2"),
    ]
    assert rows["never"] == [("item", "v", EXPORTED_US, b"3")]
    rule = importer.rpc.get_table(importer.table).column_families["brief"].gc_rule
    assert [each.max_age.total_seconds() for each in rule.union.rules][1] == 7200


def test_a_family_ends_cells_when_dynamodb_would(importer, tmp_path):
    importer.use({"row_key": "{k}", "families": {"e": {"max_age": "100s"}}, "family": "e",
                  "ttl": "End"})  # fmt: skip
    ends = int(time.time()) + 3
    path = tmp_path / "items.json"
    path.write_text(line({"k": ("S", "k"), "End": ("N", str(ends))}))
    importer.run_well(path)
    assert list(importer.cells()) == ["k"]
    deadline = time.monotonic() + PATIENCE_SECONDS
    while importer.cells() and time.monotonic() < deadline:
        time.sleep(0.2)
    assert importer.cells() == {}
    assert time.time() >= ends
