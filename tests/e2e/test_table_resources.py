"""What a table has beside its rows: authorized views and schema bundles."""

import pytest
from google.api_core import exceptions
from google.cloud.bigtable_admin_v2 import types
from google.protobuf import descriptor_pb2, timestamp_pb2
from harness.admin import mask

VIEW = types.AuthorizedView.ResponseView
FIELD = descriptor_pb2.FieldDescriptorProto


@pytest.fixture
def parent(admin, new_instance):
    """A table's name."""
    return admin.create_table(new_instance(), "t")


# --- authorized views ---

SUBSET = {
    "row_prefixes": [b"a", b"b"],
    "family_subsets": {"f": {"qualifiers": [b"q"], "qualifier_prefixes": [b""]}},
}


def create_view(admin, parent, view_id="v", **fields):
    return admin.tables.create_authorized_view(
        parent=parent, authorized_view_id=view_id,
        authorized_view={"subset_view": SUBSET, **fields},
    ).result()  # fmt: skip


def get_view(admin, name, view=VIEW.FULL):
    return admin.tables.get_authorized_view(request={"name": name, "view": view})


def update_view(admin, paths, **fields):
    return admin.tables.update_authorized_view(
        authorized_view=fields, update_mask=mask(*paths)
    ).result()


def test_life_of_an_authorized_view(admin, parent):
    made = create_view(admin, parent)
    assert made.name == f"{parent}/authorizedViews/v"
    assert made.subset_view == types.AuthorizedView.SubsetView(SUBSET)
    assert get_view(admin, made.name) == made
    with pytest.raises(exceptions.AlreadyExists):
        create_view(admin, parent)
    admin.tables.delete_authorized_view(name=made.name)
    with pytest.raises(exceptions.NotFound):
        get_view(admin, made.name)
    with pytest.raises(exceptions.NotFound):
        create_view(admin, f"{parent}2")


def test_how_much_is_shown_of_an_authorized_view(admin, parent):
    made = create_view(admin, parent, deletion_protection=True)
    basic = types.AuthorizedView(name=made.name, etag=made.etag, deletion_protection=True)
    assert get_view(admin, made.name, VIEW.BASIC) == basic
    assert get_view(admin, made.name, VIEW.RESPONSE_VIEW_UNSPECIFIED) == made
    assert get_view(admin, made.name, VIEW.NAME_ONLY) == types.AuthorizedView(name=made.name)
    listed = admin.tables.list_authorized_views(parent=parent)
    assert list(listed) == [types.AuthorizedView(name=made.name)]
    request = {"parent": parent, "view": VIEW.FULL}
    assert list(admin.tables.list_authorized_views(request=request)) == [made]


def test_pages_of_authorized_views(admin, parent):
    names = [create_view(admin, parent, f"v{number}").name for number in range(5)]
    request = {"parent": parent, "page_size": 2}
    assert [each.name for each in admin.tables.list_authorized_views(request=request)] == names


def test_updates_of_an_authorized_view(admin, parent):
    made = create_view(admin, parent)
    changed = update_view(
        admin, ["subset_view.row_prefixes"], name=made.name, etag=made.etag,
        subset_view={"row_prefixes": [b"c"]}, deletion_protection=True,
    )  # fmt: skip
    assert list(changed.subset_view.row_prefixes) == [b"c"]
    assert changed.subset_view.family_subsets == made.subset_view.family_subsets
    assert not changed.deletion_protection
    with pytest.raises(exceptions.Aborted):
        update_view(admin, ["subsetView"], name=made.name, etag=made.etag, subset_view={})
    # Without a mask: what is set.
    changed = update_view(admin, [], name=made.name, deletion_protection=True)
    assert changed.deletion_protection
    assert list(changed.subset_view.row_prefixes) == [b"c"]
    # All that there is.
    changed = update_view(admin, ["*"], name=made.name, subset_view={"row_prefixes": [b"d"]})
    assert not changed.deletion_protection
    assert changed.subset_view == types.AuthorizedView.SubsetView(row_prefixes=[b"d"])
    with pytest.raises(exceptions.InvalidArgument):
        update_view(admin, ["subset_view"], name=made.name)
    with pytest.raises(exceptions.InvalidArgument):
        update_view(admin, ["name"], name=made.name)


def test_a_protected_view_protects_table_and_instance(admin, parent):
    view = create_view(admin, parent, deletion_protection=True)
    instance = parent.rsplit("/", 2)[0]
    for delete, name in (
        (admin.tables.delete_authorized_view, view.name),
        (admin.tables.delete_table, parent),
        (admin.instances.delete_instance, instance),
    ):
        with pytest.raises(exceptions.FailedPrecondition, match="protected"):
            delete(name=name)
    update_view(admin, ["deletionProtection"], name=view.name)
    admin.tables.delete_table(name=parent)
    admin.create_table(instance, "t")
    assert not list(admin.tables.list_authorized_views(parent=parent))


@pytest.mark.parametrize(
    "fields", [{"subset_view": None}, {"subset_view": {"family_subsets": {"": {}}}}], ids=str
)
def test_what_no_authorized_view_is(admin, parent, fields):
    with pytest.raises(exceptions.InvalidArgument):
        create_view(admin, parent, **fields)


# --- schema bundles ---


def bundle_of(*messages, name="a.proto", dependency=(), enums=()):
    file = descriptor_pb2.FileDescriptorProto(
        name=name, package="pkg", dependency=dependency, message_type=messages, enum_type=enums
    )
    return descriptor_pb2.FileDescriptorSet(file=[file])


def field(name, number, kind=FIELD.TYPE_INT64, label=FIELD.LABEL_OPTIONAL, **more):
    return FIELD(name=name, number=number, type=kind, label=label, **more)


def message(*fields, name="M", **more):
    return descriptor_pb2.DescriptorProto(name=name, field=fields, **more)


def enum(*names):
    values = [{"name": name, "number": number} for number, name in enumerate(names)]
    return descriptor_pb2.EnumDescriptorProto(name="E", value=values)


def schema(descriptors):
    return {"proto_schema": {"proto_descriptors": descriptors.SerializeToString()}}


def create_bundle(admin, parent, descriptors, bundle_id="s"):
    return admin.tables.create_schema_bundle(
        parent=parent, schema_bundle_id=bundle_id, schema_bundle=schema(descriptors)
    ).result()


def update_bundle(admin, name, descriptors, **fields):
    return admin.tables.update_schema_bundle(
        request={
            "schema_bundle": {"name": name, **schema(descriptors)},
            "update_mask": mask("proto_schema"),
            **fields,
        }
    ).result()


BEFORE = bundle_of(
    message(field("a", 1), field("b", 2, FIELD.TYPE_MESSAGE, type_name=".pkg.M.Inner"),
            nested_type=[message(name="Inner")]),
    enums=[enum("ZERO", "ONE")],
)  # fmt: skip


def test_life_of_a_schema_bundle(admin, parent):
    made = create_bundle(admin, parent, BEFORE)
    assert made.name == f"{parent}/schemaBundles/s"
    assert admin.tables.get_schema_bundle(name=made.name) == made
    assert list(admin.tables.list_schema_bundles(parent=parent)) == [made]
    with pytest.raises(exceptions.AlreadyExists):
        create_bundle(admin, parent, BEFORE)
    changed = update_bundle(admin, made.name, BEFORE)
    with pytest.raises(exceptions.Aborted):
        admin.tables.delete_schema_bundle(request={"name": made.name, "etag": made.etag})
    admin.tables.delete_schema_bundle(request={"name": made.name, "etag": changed.etag})
    with pytest.raises(exceptions.NotFound):
        admin.tables.get_schema_bundle(name=made.name)


def test_bundles_of_googles_own_files(admin, parent):
    """Real files, with options, extensions, comments' places."""
    files = descriptor_pb2.FileDescriptorSet()
    for module in (descriptor_pb2, timestamp_pb2):
        module.DESCRIPTOR.CopyToProto(files.file.add())
    made = create_bundle(admin, parent, files)
    assert made.proto_schema.proto_descriptors == files.SerializeToString()


@pytest.mark.parametrize(
    "descriptors",
    [
        descriptor_pb2.FileDescriptorSet(),
        bundle_of(dependency=["b.proto"]),
        bundle_of(message(), message()),
        bundle_of(message(field("a", 1), field("b", 1))),
        bundle_of(message(field("a", 0))),
        bundle_of(message(field("a", 1, FIELD.TYPE_MESSAGE, type_name=".pkg.N"))),
        bundle_of(message(field("a", 1, FIELD.TYPE_ENUM, type_name=".pkg.M"))),
        descriptor_pb2.FileDescriptorSet(file=[{"name": "a.proto"}, {"name": "a.proto"}]),
        bundle_of(message(field("a", 1), field("a", 2))),
        bundle_of(message(field("a", 1 << 29))),
        bundle_of(message(field("a", 19000))),
        bundle_of(message(field("a", 1, oneof_index=0))),
        bundle_of(enums=[enum()]),
        bundle_of(enums=[enum("A", "A")]),
    ],
    ids=[
        "empty", "import", "type twice", "number twice", "number 0", "no type", "no enum",
        "file twice", "name twice", "number too large", "reserved number", "no oneof", "no values",
        "value twice",
    ],
)  # fmt: skip
def test_what_no_schema_bundle_is(admin, parent, descriptors):
    with pytest.raises(exceptions.InvalidArgument, match="proto_descriptors"):
        create_bundle(admin, parent, descriptors)


def test_bytes_that_are_no_descriptors(admin, parent):
    bundle = {"proto_schema": {"proto_descriptors": b"\xff\xff"}}
    with pytest.raises(exceptions.InvalidArgument, match="FileDescriptorSet"):
        admin.tables.create_schema_bundle(
            parent=parent, schema_bundle_id="s", schema_bundle=bundle
        )


INNER = {"nested_type": [message(name="Inner")]}
A, B = BEFORE.file[0].message_type[0].field
ENUM = enum("ZERO", "ONE")


@pytest.mark.parametrize(
    ("after", "missing"),
    [
        (bundle_of(enums=[ENUM]), "pkg.M"),
        (bundle_of(message(A, **INNER), enums=[ENUM]), "pkg.M.b"),
        (bundle_of(message(field("x", 1), B, **INNER), enums=[ENUM]), "pkg.M.a"),
        (bundle_of(message(field("a", 1, FIELD.TYPE_STRING), B, **INNER), enums=[ENUM]), "pkg.M.a"),
        (
            bundle_of(
                message(field("a", 1, label=FIELD.LABEL_REPEATED), B, **INNER), enums=[ENUM]
            ),
            "pkg.M.a",
        ),
        (bundle_of(message(A, B, **INNER), enums=[enum("ZERO")]), "pkg.E.ONE"),
    ],
    ids=["type", "field", "name", "field type", "label", "value"],
)
def test_what_is_not_backward_compatible(admin, parent, after, missing):
    made = create_bundle(admin, parent, BEFORE)
    with pytest.raises(exceptions.InvalidArgument, match=f"backward compatible: '{missing}'"):
        update_bundle(admin, made.name, after)
    assert admin.tables.get_schema_bundle(name=made.name) == made
    changed = update_bundle(admin, made.name, after, ignore_warnings=True)
    assert changed.proto_schema.proto_descriptors == after.SerializeToString()


C = field("c", 3)
REQUIRED = field("a", 1, label=FIELD.LABEL_REQUIRED)


def in_oneof(each, index):
    changed = FIELD(oneof_index=index)
    changed.MergeFrom(each)
    return changed


def with_oneofs(*fields):
    return bundle_of(message(*fields, oneof_decl=[{"name": "x"}, {"name": "y"}]))


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        (bundle_of(message(A)), bundle_of(message(REQUIRED)), "'pkg.M.a' is required now"),
        (bundle_of(message(C)), bundle_of(message(REQUIRED, C)), "'pkg.M.a' is required now"),
        (bundle_of(message(REQUIRED)), bundle_of(message(REQUIRED, C)), None),
        (bundle_of(message(REQUIRED)), bundle_of(message(A)), None),
        (with_oneofs(A), with_oneofs(in_oneof(A, 1), in_oneof(C, 1)), None),
        (with_oneofs(A, C), with_oneofs(in_oneof(A, 0), in_oneof(C, 1)), None),
        (with_oneofs(A, C), with_oneofs(in_oneof(A, 0), in_oneof(C, 0)), "pkg.M.c' is in a oneof"),
        (
            with_oneofs(in_oneof(A, 0), in_oneof(C, 1)),
            with_oneofs(in_oneof(A, 1), in_oneof(C, 1)),
            "pkg.M.c' is in a oneof",
        ),
        (
            with_oneofs(in_oneof(A, 0), in_oneof(C, 0)),
            with_oneofs(in_oneof(A, 1), in_oneof(C, 1)),
            None,
        ),
        (with_oneofs(in_oneof(A, 0), in_oneof(C, 0)), with_oneofs(A, C), None),
    ],
)
def test_what_may_be_missing_and_what_may_stand_together(admin, parent, before, after, fault):
    made = create_bundle(admin, parent, before)
    if fault is None:
        update_bundle(admin, made.name, after)
    else:
        with pytest.raises(exceptions.InvalidArgument, match=fault):
            update_bundle(admin, made.name, after)
        update_bundle(admin, made.name, after, ignore_warnings=True)


def test_what_is_backward_compatible(admin, parent):
    made = create_bundle(admin, parent, BEFORE)
    after = bundle_of(
        message(A, B, field("new", 3), **INNER),
        message(name="New"),
        enums=[enum("ZERO", "ONE", "TWO")],
    )
    update_bundle(admin, made.name, after)
