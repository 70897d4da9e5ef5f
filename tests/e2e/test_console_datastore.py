"""Datastore in the console, in Chromium: databases, kinds with what statistics say, entities and
changes of them, GQL with its plans, indexes, and what the pages say when something is wrong."""

import contextlib
import time

import pytest
from harness.browser import ALWAYS, Visitor, chromium, looks
from harness.patience import PATIENCE_SECONDS
from harness.rest import Rest, b64
from harness.server import EXTERNAL, Server
from test_console import look_at

PROJECT = "shop"
DB = f"#/d/{PROJECT}/(default)"
TASKS = f"{DB}/entities?kind=Task&limit=25"
ENTITY = f"{DB}/entity?path=%5B%7B%22kind%22%3A%22Task%22%2C%22name%22%3A%22everything%22%7D%5D"
PAGES = {
    "databases": "#/datastore",
    "kinds": DB,
    "kinds-other": f"{DB}?namespace=other",
    "entities": TASKS,
    "entities-none": f"{DB}/entities?kind=Nothing",
    "entity": ENTITY,
    "gql": f"{DB}/gql?kind=Task",
    "indexes": f"{DB}/indexes",
}


def path_of(kind, which):
    return [{"kind": kind, ("id" if isinstance(which, int) else "name"): str(which)}]


class Store:
    """A project's Datastore by REST."""

    def __init__(self, host):
        self.rest, self.host = Rest(host), host

    def ask(self, method, body):
        return self.rest.call("POST", f"/v1/projects/{PROJECT}:{method}", body)

    def key(self, *path, namespace=""):
        elements = [
            element
            for kind, which in zip(path[::2], path[1::2], strict=True)
            for element in path_of(kind, which)
        ]
        return {
            "partitionId": {"projectId": PROJECT, "namespaceId": namespace},
            "path": elements,
        }

    def put(self, *entities):
        mutations = [{"upsert": {"key": key, "properties": all_}} for key, all_ in entities]
        self.ask("commit", {"mode": "NON_TRANSACTIONAL", "mutations": mutations})

    def get(self, *path):
        """The properties, or None."""
        found = self.ask("lookup", {"keys": [self.key(*path)]}).get("found")
        return found[0]["entity"].get("properties", {}) if found else None

    def count(self, kind):
        query = {"kind": [{"name": "__Stat_Kind__"}]}
        found = self.ask("runQuery", {"query": query})["batch"].get("entityResults", [])
        counts = {
            each["entity"]["properties"]["kind_name"]["stringValue"]: each["entity"]["properties"][
                "count"
            ]["integerValue"]
            for each in found
        }
        return int(counts.get(kind, 0))

    def until(self, what):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not what():
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def finish(self, operation):
        self.rest.call("POST", f"/v1/{operation['name']}:wait", "{}")


def everything(store):
    """An entity with a value of each type."""
    inner = {"key": None, "properties": {"street": {"stringValue": "Main St"}}}
    del inner["key"]
    return (
        store.key("Task", "everything"),
        {
            "title": {"stringValue": "Write the <b>page</b>\nand look at it"},
            "priority": {"integerValue": "9007199254740993"},
            "share": {"doubleValue": 0.25},
            "done": {"booleanValue": False},
            "due": {"timestampValue": "2026-11-22T05:34:52.123456Z"},
            "parent": {"keyValue": store.key("List", "home")},
            "blob": {"blobValue": b64(b"\0\xffabc"), "excludeFromIndexes": True},
            "place": {"geoPointValue": {"latitude": 47.5, "longitude": -8.25}},
            "address": {"entityValue": inner},
            "tags": {"arrayValue": {"values": [{"stringValue": "a"}, {"integerValue": "2"}]}},
            "nothing": {"nullValue": None},
        },
    )


def tasks(store, count):
    return [
        (
            store.key("Task", number),
            {
                "title": {"stringValue": f"Task number {number}"},
                "priority": {"integerValue": str(number % 5)},
                "notes": {"stringValue": "n" * 50, "excludeFromIndexes": True},
            },
        )
        for number in range(1, count + 1)
    ]


def fill(store):
    store.put(everything(store), *tasks(store, 60))
    store.put((store.key("List", "home"), {}), (store.key("List", "home", "Note", 5), {}))
    store.put((store.key("Task", 1, namespace="other"), {"title": {"stringValue": "elsewhere"}}))
    group = f"/v1/projects/{PROJECT}/databases/(default)/collectionGroups/Task"
    fields = [
        {"fieldPath": "priority", "order": "DESCENDING"},
        {"fieldPath": "title", "order": "ASCENDING"},
    ]
    index = {"queryScope": "COLLECTION_GROUP", "apiScope": "DATASTORE_MODE_API", "fields": fields}
    store.finish(store.rest.call("POST", f"{group}/indexes", index))
    due = {"ttlConfig": {}}
    store.rest.call("PATCH", f"{group}/fields/expires", due)
    named = {"databaseId": "second", "mode": "NON_TRANSACTIONAL"}
    key = store.key("Task", 1)
    key["partitionId"]["databaseId"] = "second"
    store.ask("commit", {**named, "mutations": [{"upsert": {"key": key}}]})
    instance = {"displayName": "Shop"}
    clusters = {"c1": {"location": f"projects/{PROJECT}/locations/local", "serveNodes": 1}}
    body = {"instanceId": "shop", "instance": instance, "clusters": clusters}
    store.rest.call("POST", f"/v2/projects/{PROJECT}/instances", body)
    store.until(lambda: store.count("Task") == 62)


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    if EXTERNAL:
        pytest.skip("needs a server of its own")
    directory = tmp_path_factory.mktemp("datastore")
    running = Server(directory, ("--datastore-statistics-interval", "1s")).start()
    found = Store(running.host)
    fill(found)
    yield found
    running.close()


@pytest.fixture
def visitor(browser, store):
    """A function that makes a visitor: visitor(size=…, scheme=…)."""
    with contextlib.ExitStack() as stack:

        def arrive(**more):
            visitor = Visitor(browser, store.host, **more)
            stack.callback(visitor.leave)
            return visitor

        yield arrive


def entity_page(kind, which):
    return f"{DB}/entity?path=%5B%7B%22kind%22%3A%22{kind}%22%2C%22name%22%3A%22{which}%22%7D%5D"


# --- how it looks ---


@looks("phone", "desktop", "4k")
def test_every_page_is_whole(visitor, size, scheme):
    somebody = visitor(size=size, scheme=scheme)
    for name, path in PAGES.items():
        somebody.visit(path)
        if name == "gql":
            somebody.page.get_by_role("button", name="Run and explain").click()
            somebody.page.get_by_role("heading", name="What running it took").wait_for()
        look_at(somebody, f"datastore-{name}")


@pytest.mark.parametrize(("size", "scheme"), ALWAYS)
def test_every_dialog_is_whole(visitor, size, scheme):
    somebody = visitor(size=size, scheme=scheme)
    page = somebody.page
    somebody.visit(ENTITY)
    for name, opener in {
        "edit": "Edit due",
        "array": "Edit tags",
        "add": "Add a property",
        "new": "New entity below it",
        "delete": "Delete the entity",
    }.items():
        page.get_by_role("button", name=opener).click()
        page.wait_for_selector("dialog[open]")
        look_at(somebody, f"datastore-dialog-{name}")
        page.keyboard.press("Escape")
        page.wait_for_selector("dialog", state="detached")


# --- what there is ---


def rows_of(page, caption):
    region = page.get_by_role("region", name=caption)
    return [row.locator("td").all_inner_texts() for row in region.locator("tbody tr").all()]


def test_from_instances_to_an_entity(visitor):
    somebody = visitor()
    page = somebody.page
    somebody.visit("#/instances")
    page.get_by_role("link", name=f"Datastore of project {PROJECT}").click()
    page.get_by_role("link", name="second", exact=True).wait_for()
    assert rows_of(page, "Databases") == [["(default)", PROJECT], ["second", PROJECT]]
    page.get_by_role("link", name="(default)").click()
    page.get_by_role("link", name="Task", exact=True).wait_for()
    page.get_by_label("Namespace").select_option("other")
    page.wait_for_url("**namespace=other")
    page.get_by_role("link", name="List", exact=True).wait_for(state="detached")
    page.get_by_role("link", name="Task", exact=True).wait_for()
    assert [row[:2] for row in rows_of(page, "Kinds")] == [["Task", "1"]]
    page.get_by_role("link", name="Task", exact=True).click()
    page.get_by_role("link", name="1", exact=True).click()
    page.get_by_text("elsewhere").wait_for()
    assert page.get_by_text("KEY(NAMESPACE('other'), Task, 1)").is_visible()


def test_kinds_have_what_was_counted(visitor):
    somebody = visitor()
    somebody.visit(DB)
    found = {row[0]: row[1] for row in rows_of(somebody.page, "Kinds")}
    assert {**found, "List": "1", "Note": "1", "Task": "61"} == found


def keys(page):
    page.wait_for_selector(".results[aria-busy]", state="detached")
    return page.locator(".entities td.key").all_inner_texts()


def test_entities_go_page_by_page(visitor):
    somebody = visitor()
    page = somebody.page
    somebody.visit(TASKS)
    assert keys(page) == [str(number) for number in range(1, 26)]
    page.keyboard.press("n")
    page.get_by_role("link", name="26", exact=True).wait_for()
    assert keys(page) == [str(number) for number in range(26, 51)]
    page.get_by_role("button", name="Next").click()
    page.get_by_role("link", name="everything").wait_for()
    assert keys(page) == [*(str(number) for number in range(51, 61)), "everything"]
    assert page.get_by_role("button", name="Next").is_disabled()
    page.go_back()
    page.get_by_role("link", name="26", exact=True).wait_for()
    page.get_by_role("button", name="First page").click()
    page.get_by_role("link", name="1", exact=True).wait_for()


def test_entities_by_a_property(visitor):
    somebody = visitor()
    page = somebody.page
    somebody.visit(TASKS)
    page.get_by_label("Property").fill("priority")
    page.get_by_label("Value").fill("4")
    page.get_by_label("Of type").select_option("integerValue")
    page.get_by_role("button", name="Read").click()
    page.get_by_text("12 entities on this page").wait_for()
    assert keys(page) == [str(number) for number in range(4, 61, 5)]
    page.get_by_label("Value").fill("four")
    page.get_by_role("button", name="Read").click()
    page.get_by_text("An integer is digits").wait_for()
    page.get_by_label("Property").fill("notes")
    page.get_by_label("Of type").select_option("stringValue")
    page.get_by_role("button", name="Read").click()
    page.get_by_text("excluded from indexes is not found").wait_for()


def test_values_of_every_type_are_shown(visitor):
    somebody = visitor()
    page = somebody.page
    somebody.visit(ENTITY)
    page.get_by_role("region", name="Properties").wait_for()
    shown = {row[0]: tuple(row[1:4]) for row in rows_of(page, "Properties")}
    assert shown["title"] == ("text", "Write the <b>page</b>\nand look at it", "indexed")
    assert shown["priority"] == ("integer", "9007199254740993", "indexed")
    assert shown["share"] == ("double", "0.25", "indexed")
    assert shown["done"] == ("boolean", "false", "indexed")
    assert shown["due"] == ("timestamp", "2026-11-22T05:34:52.123456Z", "indexed")
    assert shown["parent"] == ("key", "List home", "indexed")
    assert shown["blob"] == ("bytes", r"\x00\xffabc", "excluded")
    assert shown["place"] == ("geo point", "47.5, -8.25", "indexed")
    assert shown["address"] == ("entity", 'street: "Main St"', "indexed")
    assert shown["tags"] == ("array", '- "a"\n- 2', "indexed")
    assert shown["nothing"] == ("null", "null", "indexed")
    page.get_by_role("link", name="List home").click()
    page.get_by_text("The entity has no property").wait_for()
    somebody.visit(entity_page("Task", "nowhere"))
    page.get_by_text("There is no such entity").wait_for()


# --- changes ---


def edit(page, name, text, type_=None):
    page.get_by_role("button", name=f"Edit {name}").click()
    if type_:
        page.get_by_label("Type").select_option(type_)
    page.get_by_role("textbox", name="Value").fill(text)
    page.get_by_role("button", name="Write", exact=True).click()


def test_properties_are_edited_added_and_deleted(visitor, store):
    somebody = visitor()
    page = somebody.page
    key, properties = everything(store)
    key["path"][0] = {"kind": "Draft", "name": "edited"}
    store.put((key, properties))
    somebody.visit(entity_page("Draft", "edited"))
    page.get_by_role("region", name="Properties").wait_for()
    for name, text, wrong in (
        ("priority", "12", "twelve"),
        ("share", "1e3", "much"),
        ("done", "true", "maybe"),
        ("place", "1, 2", "here"),
        ("tags", '{"values": [{"stringValue": "z"}]}', "[z"),
        ("blob", "\\x01", "\\x"),
    ):
        edit(page, name, wrong)
        page.locator("dialog [role=alert]").wait_for()
        page.get_by_role("textbox", name="Value").fill(text)
        page.get_by_role("button", name="Write", exact=True).click()
        page.wait_for_selector("dialog", state="detached")
        page.wait_for_selector(".results[aria-busy]", state="detached")
    edit(page, "due", "yesterday")
    page.locator("dialog [role=alert]").wait_for()  # in the server's words
    page.keyboard.press("Escape")
    somebody.expect_trouble("400")
    page.get_by_role("button", name="Add a property").click()
    page.get_by_label("Name").fill("owner")
    page.get_by_role("textbox", name="Value").fill("zoë")
    page.get_by_label("Indexed").uncheck()
    page.get_by_role("button", name="Write", exact=True).click()
    page.get_by_role("button", name="Edit owner").wait_for()
    page.get_by_role("button", name="Delete nothing").click()
    page.get_by_role("button", name="Delete the property").click()
    page.get_by_role("button", name="Edit nothing").wait_for(state="detached")
    found = store.get("Draft", "edited")
    assert "nothing" not in found
    assert found["owner"] == {"stringValue": "zoë", "excludeFromIndexes": True}
    assert found["priority"] == {"integerValue": "12"}
    assert found["share"] == {"doubleValue": 1000}
    assert found["done"] == {"booleanValue": True}
    assert found["place"] == {"geoPointValue": {"latitude": 1, "longitude": 2}}
    assert found["tags"] == {"arrayValue": {"values": [{"stringValue": "z"}]}}
    assert found["blob"] == {"blobValue": b64(b"\x01"), "excludeFromIndexes": True}
    assert found["title"] == properties["title"] and found["due"] == properties["due"]


def test_nobodys_change_is_lost(visitor, store):
    somebody = visitor()
    page = somebody.page
    store.put((store.key("Draft", "contended"), {"n": {"integerValue": "1"}}))
    somebody.visit(entity_page("Draft", "contended"))
    page.get_by_role("button", name="Edit n").wait_for()
    store.put((store.key("Draft", "contended"), {"n": {"integerValue": "2"}}))
    edit(page, "n", "3")
    page.get_by_text("Somebody has changed or deleted the entity").wait_for()
    look_at(somebody, "datastore-conflict")
    assert store.get("Draft", "contended") == {"n": {"integerValue": "2"}}
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Delete the entity").click()
    page.locator("dialog button.danger").click()
    page.get_by_text("Somebody has changed or deleted the entity").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Refresh").click()
    page.get_by_role("cell", name="2", exact=True).wait_for()
    edit(page, "n", "4")
    page.get_by_role("cell", name="4", exact=True).wait_for()
    assert store.get("Draft", "contended") == {"n": {"integerValue": "4"}}


def test_an_entity_is_deleted_not_by_enter_alone(visitor, store):
    somebody = visitor()
    page = somebody.page
    store.put((store.key("Draft", "old"), {}))
    somebody.visit(entity_page("Draft", "old"))
    page.get_by_role("button", name="Delete the entity").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open]")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog", state="detached")
    assert store.get("Draft", "old") == {}
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open]")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_text("There is no such entity").wait_for()
    assert store.get("Draft", "old") is None


# --- new ones ---


def begin(page, button="New entity"):
    page.get_by_role("button", name=button, exact=True).click()
    return page.get_by_role("dialog")


def add_property(dialog, name, text, type_="stringValue", is_indexed=True):
    dialog.get_by_role("button", name="Add a property").click()
    one = dialog.get_by_role("group", name="A property").last
    one.get_by_label("Property").fill(name)
    one.get_by_label("Type").select_option(type_)
    one.get_by_role("textbox", name="Value").fill(text)
    one.get_by_label("Indexed").set_checked(is_indexed)
    return one


def make(dialog):
    dialog.get_by_role("button", name="Make it").click()


def test_an_entity_of_every_type_is_made(visitor, store):
    somebody = visitor()
    page = somebody.page
    somebody.visit(f"{DB}/entities?kind=Made")
    dialog = begin(page)
    assert page.evaluate("document.activeElement.labels[0].textContent") == "Name or id"
    dialog.get_by_label("Name or id").fill("by hand")
    for name, text, type_ in (
        ("title", " as typed ", "stringValue"),
        ("count", "-9007199254740993", "integerValue"),
        ("share", "0.5", "doubleValue"),
        ("done", "true", "booleanValue"),
        ("due", "2026-11-22T05:34:52.123456Z", "timestampValue"),
        ("place", "47.5, -8.25", "geoPointValue"),
        ("tags", '{"values": [{"stringValue": "a"}]}', "arrayValue"),
        ("inner", '{"properties": {"n": {"integerValue": "1"}}}', "entityValue"),
        ("nothing", "", "nullValue"),
    ):
        add_property(dialog, name, text, type_)
    add_property(dialog, "blob", "\\x00a", "blobValue", is_indexed=False)
    look_at(somebody, "datastore-dialog-new-properties")
    make(dialog)
    page.get_by_role("heading", name="Made by hand").wait_for()
    page.get_by_role("region", name="Properties").wait_for()
    assert store.get("Made", "by hand") == {
        "title": {"stringValue": " as typed "},
        "count": {"integerValue": "-9007199254740993"},
        "share": {"doubleValue": 0.5},
        "done": {"booleanValue": True},
        "due": {"timestampValue": "2026-11-22T05:34:52.123456Z"},
        "place": {"geoPointValue": {"latitude": 47.5, "longitude": -8.25}},
        "tags": {"arrayValue": {"values": [{"stringValue": "a"}]}},
        "inner": {"entityValue": {"properties": {"n": {"integerValue": "1"}}}},
        "nothing": {"nullValue": None},
        "blob": {"blobValue": b64(b"\0a"), "excludeFromIndexes": True},
    }


def test_keys_of_new_entities(visitor, store):
    """By an id, by one that the server gives, in a namespace, and below another entity."""
    somebody = visitor()
    page = somebody.page
    somebody.visit(DB)
    dialog = begin(page)
    dialog.get_by_label("Kind").fill("Kept")
    dialog.get_by_label("Key").select_option("id")
    dialog.get_by_label("Name or id").fill("12x")
    make(dialog)
    dialog.get_by_text("An id is a number above 0.").wait_for()
    dialog.get_by_label("Name or id").fill("12")
    make(dialog)
    page.get_by_role("heading", name="Kept 12").wait_for()
    assert store.get("Kept", 12) == {}

    dialog = begin(page, "New entity below it")
    dialog.get_by_text("Kept 12").wait_for()
    dialog.get_by_label("Kind").fill("Leaf")
    dialog.get_by_label("Key").select_option("given")
    assert dialog.get_by_label("Name or id").is_hidden()
    make(dialog)
    page.get_by_role("heading", name="Kept 12 / Leaf ").wait_for()
    given = page.get_by_role("heading", level=2).inner_text().rsplit(" ", 1)[1]
    assert store.get("Kept", 12, "Leaf", int(given)) == {}

    somebody.visit(f"{DB}?namespace=other")
    dialog = begin(page)
    assert dialog.get_by_label("Namespace").input_value() == "other"
    dialog.get_by_label("Kind").fill("Kept")
    dialog.get_by_label("Name or id").fill("there")
    make(dialog)
    page.get_by_text("KEY(NAMESPACE('other'), Kept, 'there')").wait_for()


def test_an_entity_that_is_there_is_left_as_it_is(visitor, store):
    somebody = visitor()
    page = somebody.page
    store.put((store.key("Draft", "first"), {"n": {"integerValue": "1"}}))
    somebody.visit(f"{DB}/entities?kind=Draft")
    dialog = begin(page)
    dialog.get_by_label("Name or id").fill("first")
    one = add_property(dialog, "n", "two", "integerValue")
    make(dialog)
    dialog.get_by_text("n: An integer is digits").wait_for()
    one.get_by_role("textbox", name="Value").fill("2")
    other = add_property(dialog, "n", "3", "integerValue")
    make(dialog)
    dialog.get_by_text("Two properties have the same name.").wait_for()
    other.get_by_role("button", name="Remove property").click()
    make(dialog)
    dialog.get_by_text("already exists").wait_for()
    look_at(somebody, "datastore-dialog-new-there")
    assert store.get("Draft", "first") == {"n": {"integerValue": "1"}}
    page.keyboard.press("Escape")
    somebody.expect_trouble("409")


def test_who_may_not_make_entities_is_told(secure, browser):
    server = secure(policy={"projects/p": {"bindings": [
        {"role": "roles/datastore.viewer", "members": ["user:viewer@example.com"]},
    ]}})  # fmt: skip
    host = server.server.host.replace("127.0.0.1", "localhost")
    somebody = Visitor(browser, host, is_secure=True)
    page = somebody.page
    somebody.visit("#/d/p/(default)")
    somebody.log_in("viewer")
    page.get_by_text("There is no entity here").wait_for()
    dialog = begin(page)
    dialog.get_by_label("Kind").fill("Task")
    dialog.get_by_label("Name or id").fill("one")
    make(dialog)
    dialog.get_by_text("You may not do this").wait_for()
    dialog.get_by_text("datastore.entities.create").wait_for()
    assert somebody.violations() == []
    somebody.expect_trouble("403")
    somebody.leave()


# --- GQL ---


def run(page, text, button="Run"):
    page.get_by_label("GQL").fill(text)
    page.get_by_role("button", name=button, exact=True).click()
    page.wait_for_selector(".results .loading", state="detached")


def test_gql_finds_counts_and_explains(visitor):
    somebody = visitor()
    page = somebody.page
    somebody.visit(f"{DB}/gql")
    page.keyboard.press("/")
    page.keyboard.type("SELECT * FROM Task WHERE priority = 4 LIMIT 3")
    page.keyboard.press("Control+Enter")
    page.get_by_text("3 results in").wait_for()
    assert keys(page) == ["4", "9", "14"]
    run(page, "SELECT COUNT(*) AS n, SUM(priority) FROM Task WHERE priority < 10")
    assert rows_of(page, "Aggregations")[0] == ["60", "120"]
    run(page, "SELECT * FROM Task ORDER BY priority DESC, title", "Plan")
    assert rows_of(page, "Indexes of the plan") == [
        ["(priority DESC, title ASC, __name__ ASC)", "Collection group"]
    ]
    assert page.locator(".entities").count() == 0
    run(page, "SELECT * FROM Task WHERE priority = 1", "Run and explain")
    page.get_by_text("12 results in").wait_for()
    assert page.get_by_text("Read operations").is_visible()


def test_gql_that_is_wrong_is_told_in_the_servers_words(visitor):
    somebody = visitor()
    page = somebody.page
    somebody.visit(f"{DB}/gql")
    run(page, "SELECT * FROMM Task")
    page.get_by_text("GQL Parse error").or_(page.get_by_text("Encountered")).first.wait_for()
    look_at(somebody, "datastore-bad-gql")
    run(page, "SELECT * FROM Task WHERE done = TRUE ORDER BY share, due")
    page.get_by_text("index").first.wait_for()
    assert page.locator(".notice.error").is_visible()
    somebody.expect_trouble("400")


def test_indexes_and_what_expires(visitor):
    somebody = visitor()
    page = somebody.page
    somebody.visit(f"{DB}/indexes")
    (index,) = rows_of(page, "Composite indexes")
    assert index[:4] == ["Task", "priority ↓, title, __key__", "", "ready"]
    assert rows_of(page, "What expires") == [["Task", "expires", "active"]]
    somebody.visit(f"#/d/{PROJECT}/second/indexes")
    page.get_by_text("There is no composite index").wait_for()


def test_operations_are_among_those_of_the_server(visitor):
    somebody = visitor()
    page = somebody.page
    somebody.visit("#/operations")
    index = page.get_by_role("row").filter(has_text="create index")
    assert index.get_by_text("done").count() == 1
    assert index.get_by_text(f"projects/{PROJECT}").count() == 1
    field = page.get_by_role("row").filter(has_text="field operation")
    assert field.get_by_text("collectionGroups/Task/fields/expires").count() == 1
    assert page.get_by_role("row").filter(has_text="create instance").count() == 1


# --- who may not ---


def test_who_may_not_is_told(secure, browser):
    """A reader of Bigtable has no rights on Datastore, and a viewer of it may not write."""
    server = secure()
    host = server.server.host.replace("127.0.0.1", "localhost")
    somebody = Visitor(browser, host, is_secure=True)
    page = somebody.page
    somebody.visit("#/datastore")
    somebody.log_in("reader")
    page.get_by_text("You may not list the databases of all projects").wait_for()
    page.get_by_label("Project").fill("p")
    page.get_by_role("button", name="Show its databases").click()
    page.get_by_text("datastore.databases.list").wait_for()
    assert somebody.violations() == []
    somebody.screenshot("datastore-forbidden")
    somebody.expect_trouble("403")
    somebody.leave()
