"""The console's editor of SQL, in Chromium: completion, plans as trees, results as charts, and the
queries of before. Running, files and errors are in test_console.py."""

import re

import pytest
from harness.browser import ALWAYS, Visitor, chromium, looks
from harness.rpc import set_cell
from harness.server import ROOT

FUNCTIONS = ROOT / "src/sql/functions"
WORDS = ROOT / "src/console/assets/sql_words.js"
NOT_FOR_PEOPLE = {"VIEW_PARAMETERS"}
ROWS = 30


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


@pytest.fixture
def table(make_table, rpc):
    name = make_table(families=("facts", "other"))
    rows = [(b"k%02d" % i, [set_cell("facts", b"n", str(i * i - 50).encode(), 1000)])
            for i in range(ROWS)]  # fmt: skip
    assert set(rpc.mutate_rows(name, rows)) == {0}
    return name.rsplit("/", 1)[1]


@pytest.fixture
def visit(browser, server):
    arrived = []

    def arrive(**more):
        arrived.append(Visitor(browser, server.host, **more))
        arrived[-1].visit("#/p/p/i/i/query")
        return arrived[-1]

    yield arrive
    for each in arrived:
        each.leave()


def editor(page):
    return page.get_by_label("SQL", exact=True)


def options(page):
    return page.get_by_role("listbox", name="Completions").get_by_role("option")


def run(page, sql, button="Run"):
    editor(page).fill(sql)
    page.get_by_role("button", name=button, exact=True).click()
    page.wait_for_selector(".results .loading", state="detached")


NUMBERS = (
    "SELECT _key, CAST(CAST(facts['n'] AS STRING) AS INT64) AS n, "
    "-1.5 AS half FROM `{}` ORDER BY _key"
)


# --- completion ---


def test_each_function_of_the_server_is_known():
    """Those of its tables, of whichever file."""
    named = {name for file in FUNCTIONS.glob("*.c")
             for name in re.findall(r'^    \{"([A-Z][A-Z0-9_.]*)",', file.read_text(), re.MULTILINE)
             } - NOT_FOR_PEOPLE  # fmt: skip
    assert len(named) > 150
    words = set(re.findall(r"[A-Z][A-Z0-9_.]*", WORDS.read_text().split("KEYWORDS")[0]))
    assert named - words == set()


def test_names_are_completed_by_keys(visit, table):
    somebody = visit()
    page = somebody.page
    editor(page).focus()
    page.keyboard.type(f"SELECT * FROM {table[:3]}")
    options(page).first.wait_for()
    # more of the name, until there is one
    page.keyboard.type(table[3:-1])
    one = options(page).filter(has_text="table").filter(has_text=re.compile(rf"^{table} "))
    one.wait_for()
    assert somebody.violations() == []
    somebody.screenshot("query-completion")
    page.keyboard.press("ArrowDown")
    while one.get_attribute("aria-selected") != "true":
        page.keyboard.press("ArrowDown")
    assert editor(page).get_attribute("aria-activedescendant") == one.get_attribute("id")
    page.keyboard.press("Enter")
    name = table if re.fullmatch(r"\w+", table) else f"`{table}`"
    assert editor(page).input_value() == f"SELECT * FROM {name}"
    assert options(page).count() == 0
    page.keyboard.type(" WHERE fac")
    options(page).filter(has_text="family").wait_for()
    assert options(page).all_inner_texts() == ["facts family"]  # of the table that it names
    page.keyboard.press("Escape")
    assert options(page).count() == 0
    page.keyboard.press("Enter")  # nothing is chosen: a new line
    page.keyboard.type("AND starts_w")
    options(page).filter(has_text="STARTS_WITH").dispatch_event("pointerdown")
    assert editor(page).input_value().endswith(" WHERE fac\nAND STARTS_WITH(")
    page.keyboard.press("Control+Space")
    options(page).filter(has_text="_key").wait_for()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Run"


def type_anew(page, text):
    editor(page).fill("")
    editor(page).focus()
    page.keyboard.type(text)


def test_names_behind_an_alias_are_completed(visit, table):
    page = visit().page
    for query in (f"SELECT 1 FROM `{table}` AS a WHERE a.", f"SELECT 1 FROM `{table}` b WHERE b."):
        type_anew(page, query)
        options(page).first.wait_for()
        assert options(page).all_inner_texts() == ["facts family", "other family", "_key key"]
        page.keyboard.type("ot")
        options(page).filter(has_text="facts").wait_for(state="detached")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        assert editor(page).input_value() == f"{query}other"
    type_anew(page, f"SELECT 1 FROM `{table}` AS a WHERE z.")
    page.keyboard.type("ot")
    assert options(page).count() == 0


def test_names_that_begin_with_a_digit_or_a_dash_are_completed(visit, admin, rpc):
    name = rpc.create_table("7-dwarfs", {"-family": None, "9lives": None})
    try:
        page = visit().page
        type_anew(page, "SELECT * FROM 7-dw")
        options(page).filter(has_text="7-dwarfs").dispatch_event("pointerdown")
        assert editor(page).input_value() == "SELECT * FROM `7-dwarfs`"
        for typed, whole in (("-fam", "`-family`"), ("9li", "`9lives`")):
            type_anew(page, f"SELECT * FROM `7-dwarfs` WHERE {typed}")
            options(page).filter(has_text="family").first.dispatch_event("pointerdown")
            assert editor(page).input_value().endswith(f" WHERE {whole}")
    finally:
        admin.tables.delete_table(name=name)


@pytest.mark.parametrize("begun", [
    "SELECT 'sel", 'SELECT "it\'s sel', "SELECT 'it\\'s sel", "SELECT \"\"\"a\" sel",
    "SELECT 1 -- sel", "SELECT 1 # sel", "SELECT 1 /* sel",
])  # fmt: skip
def test_nothing_is_completed_in_strings_and_comments(visit, begun):
    page = visit().page
    type_anew(page, begun)
    page.keyboard.type("ec")
    assert options(page).count() == 0
    ends = {"'sel": "'", '"it\'s sel': '"', "'it\\'s sel": "'", '"""a" sel': '"""', "/* sel": "*/"}
    end = next((end for each, end in ends.items() if begun.endswith(each)), "\n")
    page.keyboard.type(f"{end} sel")
    options(page).filter(has_text="SELECT").wait_for()


# --- what was typed ---


def test_what_was_typed_is_there_when_one_is_back(visit, table):
    somebody = visit()
    page = somebody.page
    places = ["#/p/p/i/i/query", f"#/p/p/i/i/query?table={table}"]
    for number, place in enumerate(places):
        somebody.visit(place)
        editor(page).fill(f"SELECT {number}")
    somebody.visit("#/")
    for number, place in enumerate(places):
        somebody.visit(place)
        assert editor(page).input_value() == f"SELECT {number}"
    somebody.visit("#/p/p/i/i/query?sql=SELECT+9")  # a link brings its own
    assert editor(page).input_value() == "SELECT 9"
    somebody.visit(places[1])
    editor(page).fill("")
    somebody.visit("#/")
    somebody.visit(places[1])
    assert editor(page).input_value().startswith("SELECT * FROM")


# --- plans ---


def test_a_plan_is_a_tree(visit, table):
    page = visit().page
    run(page, f"SELECT _key FROM `{table}` WHERE _key < b'k05' ORDER BY _key DESC LIMIT 3", "Plan")
    page.get_by_role("region", name="Plan", exact=True).wait_for()
    root = page.locator(".plan > ul > li")
    assert root.count() == 1
    scan = page.locator(".plan li").filter(has=page.locator("strong", has_text="SCAN")).last
    told = scan.locator("> ul > li").all_inner_texts()
    assert any(each.startswith("keys:") and "k05" in each for each in told), told
    assert page.locator(".plan .badge").count() == 0


def test_a_plan_that_was_run_says_what_it_took(visit, table):
    somebody = visit()
    page = somebody.page
    run(page, f"SELECT COUNT(*) AS n FROM `{table}`", "Run and explain")
    badges = page.locator(".plan .badge")
    badges.first.wait_for()
    told = badges.all_inner_texts()
    took = r"in (?:less than )?[1-9][\d.]* [mµ]?s"  # once "in 0 s"
    assert re.fullmatch(f"1 row {took}", told[0]), told
    assert re.fullmatch(f"in all 1 row {took}, [\\d,]+ KB kept", told[1]), told
    assert re.fullmatch(f"30 rows {took}", told[-2]), told
    assert told[-1].startswith("30 rows and "), told
    assert page.locator(".plan li", has_text="gave:").count() == 0
    assert somebody.violations() == []
    somebody.screenshot("query-plan")
    page.get_by_text("As text").click()
    page.get_by_role("region", name="Plan as text").get_by_text("SCAN").wait_for()


def test_what_took_next_to_no_time_is_not_told_as_none(visit):
    """"in all 1 row in 0 s": the server tells thousandths and millionths of a second."""
    told = visit().page.evaluate("""async () => {
        const { planTree } = await import(document.querySelector("script[type=module]").src
            .replace("main.js", "query_plan.js"));
        const place = document.createElement("div");
        place.append(...planTree(["ONE ROW", "  gave: 1 rows in 0.000000 s",
            "read: 0 rows, 0 cells", "result: 1 rows in 0.000 s, 3 KB kept"]));
        return [...place.querySelectorAll(".badge")].map((each) => each.textContent);
    }""")
    assert told == ["1 row in less than 1 µs", "in all 1 row in less than 1 ms, 3 KB kept"]


# --- charts ---


def test_a_result_is_a_chart(visit, table):
    somebody = visit()
    page = somebody.page
    run(page, NUMBERS.format(table))
    page.get_by_role("button", name="Chart").click()
    chart = page.locator(".result-chart")
    picture = chart.get_by_role("img")
    told = picture.get_attribute("aria-label")
    assert "n: from -50 to 791" in told and "half: from -1.5 to -1.5" in told
    assert chart.locator("rect.bar").count() == 2 * ROWS
    heights = [float(each.get_attribute("height")) for each in chart.locator("rect.line-1").all()]
    assert max(heights) == heights[-1] and len(set(heights)) > ROWS / 2
    assert chart.locator(".axis").all_text_contents()[-2:] == ["k00", "k29"]
    chart.get_by_role("checkbox", name="half").uncheck()
    chart.get_by_label("Drawn as").select_option("lines")
    assert chart.locator("path.line").count() == 1 and chart.locator("rect").count() == 0
    chart.get_by_label("Along").select_option("n")
    assert chart.locator(".axis").all_text_contents()[-2:] == ["-50", "791"]
    assert somebody.violations() == []
    page.get_by_role("button", name="Chart").click()
    assert chart.count() == 0


def test_what_has_no_numbers_is_no_chart(visit, table):
    page = visit().page
    run(page, f"SELECT _key FROM `{table}`")
    page.get_by_text("30 rows in").wait_for()
    assert page.get_by_role("button", name="Chart").count() == 0


# --- queries of before ---


def test_queries_are_remembered_until_they_are_forgotten(visit, table):
    somebody = visit()
    page = somebody.page
    queries = [f"SELECT _key FROM `{table}` LIMIT {count}" for count in (1, 2, 1)]
    for count, query in enumerate(queries):
        run(page, query)
        page.get_by_text(f"{query[-1]} row{'s' if count == 1 else ''} in").wait_for()
    somebody.visit("#/p/p/i/i/query")
    page.get_by_text("Earlier queries (2)").click()
    shown = page.get_by_role("region", name="Earlier queries").locator("tbody td.code")
    assert shown.all_inner_texts() == [queries[0], queries[1]]
    assert somebody.violations() == []
    page.get_by_role("button", name=f"Edit {queries[1]}").click()
    assert editor(page).input_value() == queries[1]
    page.get_by_role("button", name="Forget them").click()
    somebody.visit("#/p/p/i/i/query")
    assert not page.locator(".query-history").is_visible()


@looks("phone", "desktop")
def test_the_page_is_whole(visit, table, size, scheme):
    somebody = visit(size=size, scheme=scheme)
    page = somebody.page
    run(page, NUMBERS.format(table))
    page.get_by_role("button", name="Chart").click()
    page.locator(".query-history summary").click()
    somebody.screenshot("query-full")
    assert somebody.overflow() <= 0
    if (size, scheme) in ALWAYS:
        assert somebody.violations() == []
