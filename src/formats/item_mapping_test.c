/* Items as rows by a mapping: the three translations of the migration page, and what is refused. */
#include "formats/item_mapping.h"

#include "formats/testing/testing.h"

#include <stdio.h>

/* Single quotes stand for double ones. */
static bytes quoted(struct arena *arena, const char *text)
{
    char *copy = arena_string(arena, bytes_of(text));
    assert_non_null(copy);
    for (char *at = copy; *at != '\0'; at++)
        if (*at == '\'')
            *at = '"';
    return bytes_of(copy);
}

static struct item_mapping mapping_of(struct arena *arena, const char *json)
{
    struct item_mapping mapping;
    assert_ok(item_mapping_parse("m.json", quoted(arena, json), arena, &mapping));
    return mapping;
}

static status map(struct arena *arena, const struct item_mapping *mapping, const char *json,
                  struct move_change *out)
{
    enum { DEFAULT_US = 5000, NOW_US = 1000 * 1000 };
    struct item_value item;
    assert_ok(item_read_json_map(quoted(arena, json), arena, &item));
    return item_map(mapping, &item, DEFAULT_US, NOW_US, arena, out);
}

static void check(struct arena *arena, const struct item_mapping *mapping, const char *json,
                  const char *expected)
{
    struct move_change change;
    struct buffer out = {0};
    assert_ok(map(arena, mapping, json, &change));
    describe(&change, &out);
    assert_false(out.failed);
    assert_string_equal((const char *)out.data, expected);
    buffer_free(&out);
}

static void check_refused(struct arena *arena, const struct item_mapping *mapping, const char *json,
                          const char *expected)
{
    struct move_change change;
    status s = map(arena, mapping, json, &change);
    assert_string_equal(status_message(s), expected);
    assert_status(s, STATUS_INVALID_ARGUMENT);
}

/* --- the page's translations --- */

static void a_catalogue_has_one_row_an_item(void **state)
{
    struct item_mapping mapping = mapping_of(*state, "{'row_key': '{pk}#{sk}', 'family': 'SKU'}");
    assert_false(mapping.has_items);
    assert_int_equal(mapping.family_count, 1);
    check(*state, &mapping,
          "{'pk':{'S':'hats#fedoras'},'sk':{'S':'brandA'},'Price':{'N':'30'},'Sizes':{'SS':['S']}}",
          "hats#fedoras#brandA | SKU:Price=30 | SKU:Sizes=[\"S\"]");
}

static const char videos[] =
    "{'row_key': '{VideoId}', 'families': {'Comments': {'max_versions': 50}},"
    " 'items': ["
    "  {'where': {'SK': 'Video'}, 'family': 'Video', 'timestamp': 'UploadDate',"
    "   'columns': {'UploadDate': 'drop'}},"
    "  {'where': {'SK': 'VideoStats*'}, 'family': 'Stats',"
    "   'columns': {'Likes': 'counter', 'Views': 'counter', 'SK': 'drop'}},"
    "  {'where': {'SK': 'VideoComment#*'}, 'family': 'Comments', 'timestamp': 'SK',"
    "   'strip_prefix': {'SK': 'VideoComment#'},"
    "   'columns': {'SK': 'drop', 'User': 'drop', 'Text': {'qualifier': '{User}'}}}]}";

static void a_video_is_one_row_of_several_items(void **state)
{
    struct item_mapping mapping = mapping_of(*state, videos);
    assert_true(mapping.has_items);
    assert_int_equal(mapping.family_count, 3);
    assert_string_equal(mapping.families[0].name, "Comments");
    assert_int_equal(mapping.families[0].versions, 50);
    assert_int_equal(mapping.families[1].versions, 1);
    check(*state, &mapping,
          "{'VideoId':{'S':'0123'},'SK':{'S':'Video'},'UploadDate':{'S':'2023-09-10T15:21:48'},"
          "'Format':{'S':'webm'}}",
          "0123 | Video:Format@1694359308000000=webm");
    check(*state, &mapping,
          "{'VideoId':{'S':'0123'},'SK':{'S':'VideoStatsLikes'},'Likes':{'N':'258'}}",
          "0123 | Stats:Likes=\\00\\00\\00\\00\\00\\00\\01\\02");
    check(*state, &mapping,
          "{'VideoId':{'S':'0123'},'SK':{'S':'VideoComment#1694359308001'},'User':{'S':'ann'},"
          "'Text':{'S':'nice'}}",
          "0123 | Comments:ann@1694359308001000=nice");
    check_refused(*state, &mapping, "{'VideoId':{'S':'0123'},'SK':{'S':'Other'}}",
                  "no rule of the mapping is for this item");
    check_refused(*state, &mapping, "{'VideoId':{'S':'0123'},'SK':{'S':'VideoComment#soon'}}",
                  "SK is no time: neither seconds or milliseconds since 1970, nor as in RFC 3339");
    check_refused(*state, &mapping, "{'SK':{'S':'Video'}}",
                  "the key attribute VideoId is not there");
}

static void an_adjacency_list_has_ids_as_qualifiers(void **state)
{
    struct item_mapping mapping =
        mapping_of(*state, "{'row_key': '{PK}', 'timestamp': 'DateCreated',"
                           " 'strip_prefix': {'PK': 'Invoice-', 'SK': 'Payment-'},"
                           " 'others': {'qualifier': 'Details', 'as': 'json'},"
                           " 'columns': {'DateCreated': 'drop', 'SK': 'drop'},"
                           " 'items': ["
                           "  {'where': {'SK': 'Invoice-*'}, 'family': 'Invoice'},"
                           "  {'where': {'SK': 'Payment-*'}, 'family': 'Payment',"
                           "   'others': {'qualifier': '{SK}', 'as': 'typed'}}]}");
    check(*state, &mapping,
          "{'PK':{'S':'Invoice-0123'},'SK':{'S':'Invoice-0123'},'DateCreated':{'S':'2024-01-02'},"
          "'Total':{'N':'12.50'},'To':{'S':'x'}}",
          "0123 | Invoice:Details@1704153600000000={\"To\":\"x\",\"Total\":12.50}");
    check(*state, &mapping, "{'PK':{'S':'Invoice-0123'},'SK':{'S':'Payment-0680'},'Sum':{'N':'5'}}",
          "0123 | Payment:0680={\"M\":{\"Sum\":{\"N\":\"5\"}}}");
}

/* --- details --- */

static void templates(void **state)
{
    struct item_mapping mapping = mapping_of(
        *state, "{'row_key': '{{{a:escaped}}}/{n:ordered}{n}:{a:hash}', 'others': 'drop'}");
    check(*state, &mapping, "{'a':{'S':'x y/%'},'n':{'N':'015'}}",
          "{x%20y%2F%25}/\\02\\80\\02\\10\\0015:48d702d5 | item:=");
    mapping = mapping_of(*state, "{'row_key': '{a:b:plain}'}");
    check(*state, &mapping, "{'a:b':{'S':'x'}}", "x | item:=");
    mapping = mapping_of(*state, "{'row_key': '{a}', 'salts': 100}");
    check(*state, &mapping, "{'a':{'S':'x'}}", "86#x | item:=");
    check_refused(*state, &mapping, "{'a':{'BOOL':true}}", "the key attribute a is of type BOOL");
    check_refused(*state, &mapping, "{'a':{'S':''}}", "the key attribute a is empty");
    mapping = mapping_of(*state, "{'row_key': '{a}', 'strip_prefix': {'a': 'x'}}");
    check_refused(*state, &mapping, "{'a':{'S':'x'}}", "the row key is empty");
}

static void columns(void **state)
{
    struct item_mapping mapping = mapping_of(
        *state, "{'row_key': '{k}', 'family': 'f', 'columns': {"
                " 'k': 'text', 'j': 'json', 't': 'typed', 's': 'family', 'm': {'as': 'family', "
                "'family': 'M'}, 'q': {'qualifier': 'Q', 'family': 'g', 'timestamp': 'at'}}}");
    assert_int_equal(mapping.family_count, 4);
    check(*state, &mapping,
          "{'k':{'S':'x'},'j':{'S':'y'},'t':{'N':'1'},'s':{'NS':['2']},'m':{'M':{'a':{'S':'z'}}},"
          "'q':{'BOOL':true},'at':{'N':'1'},'o':{'NULL':true}}",
          "x | f:at=1 | f:j=\"y\" | f:k=x | M:a=z | f:o= | g:Q@1000000=true | s:2=\\00 | "
          "f:t={\"N\":\"1\"}");
    check_refused(*state, &mapping, "{'k':{'S':'x'},'s':{'S':'y'}}",
                  "s is to be a family, and is no set or map");
}

static void a_list_is_versions_of_a_cell(void **state)
{
    struct item_mapping mapping =
        mapping_of(*state, "{'row_key': '{k}', 'family': 'f', 'timestamp': 'at', 'columns': {"
                           " 'at': 'drop', 'l': {'as': 'versions', 'qualifier': 'log'}}}");
    check(
        *state, &mapping,
        "{'k':{'S':'x'},'at':{'N':'1700000000'},'l':{'L':[{'S':'first'},{'N':'2'},{'L':[]}]}}",
        "x | f:log@1699999999998000=first | f:log@1699999999999000=2 | f:log@1700000000000000=[]");
    check(*state, &mapping, "{'k':{'S':'x'},'at':{'N':'0'},'l':{'L':[{'S':'a'},{'S':'b'}]}}",
          "x | f:log@0=a | f:log@1000=b");
    check(*state, &mapping, "{'k':{'S':'x'},'l':{'L':[]}}", "x | f:=");
    check_refused(*state, &mapping, "{'k':{'S':'x'},'l':{'SS':['a']}}",
                  "l is to be versions of a cell, and is no list");
}

static void expiring_items_are_dated_by_their_family(void **state)
{
    struct item_mapping mapping = mapping_of(
        *state, "{'row_key': '{k}', 'family': 'f', 'families': {'e': {'max_age': '10s'}},"
                " 'ttl': {'attribute': 'End', 'family': 'e'}, 'columns': {'End': 'drop'}}");
    struct move_change change;
    assert_int_equal(mapping.families[0].age_us, 10 * 1000 * 1000);
    check(*state, &mapping, "{'k':{'S':'x'},'End':{'N':'100'},'v':{'N':'1'}}",
          "x | e:v@90000000=1");
    check(*state, &mapping, "{'k':{'S':'x'},'v':{'N':'1'}}", "x | f:v=1");
    check(*state, &mapping, "{'k':{'S':'x'},'End':{'S':'100'},'v':{'N':'1'}}", "x | f:v=1");
    assert_ok(map(*state, &mapping, "{'k':{'S':'x'},'End':{'N':'100'}}", &change));
    assert_int_equal(change.ends_us, 100 * 1000 * 1000);
    mapping = mapping_of(*state, "{'row_key': '{k}', 'ttl': 'End'}");
    check(*state, &mapping, "{'k':{'S':'x'},'End':{'N':'100'}}", "x | item:End=100");
}

static void wrong_mappings_are_refused_with_their_place(void **state)
{
    static const struct {
        const char *json, *expected;
    } cases[] = {
        {"{", "m.json:1:1: string or '}' expected near end of file"},
        {"{'row_key': 'x',\n'row_key': 'y'}",
         "m.json:2:9: duplicate object key near '\"row_key\"'"},
        {"[]", "m.json: an object {…} is expected"},
        {"{}", "m.json: a \"row_key\" is missing"},
        {"{'items': [{'family': 'f'}]}", "m.json: items[0]: a \"row_key\" is missing"},
        {"{'rowkey': 'x'}", "m.json: the name \"rowkey\" means nothing here"},
        {"{'row_key': 'x{'}", "m.json: row_key: byte 2: '{' has no '}'"},
        {"{'row_key': 'x}'}", "m.json: row_key: byte 2: '}' has no '{'; a brace itself is \"}}\""},
        {"{'row_key': '{}'}", "m.json: row_key: byte 1: the braces have no attribute in them"},
        {"{'row_key': '{a:b}'}",
         "m.json: row_key: byte 1: behind ':' stands plain, escaped, ordered or hash"},
        {"{'row_key': 1}", "m.json: row_key: a text in quotes is expected"},
        {"{'row_key': '{a}', 'family': 'a b'}",
         "m.json: family: \"a b\" cannot be a column family's name"},
        {"{'row_key': '{a}', 'families': {'f': {'max_age': '3 weeks'}}}",
         "m.json: families.f.max_age: \"3 weeks\" is no duration like 30d, 12h, 90m or 45s"},
        {"{'row_key': '{a}', 'families': {'f': {'max_versions': -1}}}",
         "m.json: families.f.max_versions: a number from 0 to 2147483647 is expected"},
        {"{'row_key': '{a}', 'salts': 1001}", "m.json: salts: a number from 0 to 1000 is expected"},
        {"{'row_key': '{a}', 'items': []}", "m.json: items: an array […] of rules is expected"},
        {"{'row_key': '{a}', 'items': [{}, {'columns': {'x': 'number'}}]}",
         "m.json: items[1].columns.x: \"text\", \"counter\", \"json\", \"typed\", \"family\", "
         "\"versions\" or \"drop\" is expected"},
        {"{'row_key': '{a}', 'items': [{'where': {'x': 1}}]}",
         "m.json: items[0].where.x: a text in quotes is expected"},
        {"{'row_key': '{a}', 'others': {'as': 'json'}}",
         "m.json: others: a \"qualifier\" is missing"},
        {"{'row_key': '{a}', 'others': {'qualifier': 'x', 'as': 'drop'}}",
         "m.json: others: attributes can lie together as \"json\" or \"typed\""},
        {"{'row_key': '{a}', 'others': 'all'}",
         "m.json: others: \"columns\", \"drop\" or an object {…} is expected"},
        {"{'row_key': '{a}', 'ttl': {'family': 'f'}}", "m.json: ttl: an \"attribute\" is missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct item_mapping mapping;
        status s = item_mapping_parse("m.json", quoted(*state, cases[i].json), *state, &mapping);
        assert_string_equal(status_message(s), cases[i].expected);
        assert_status(s, STATUS_INVALID_ARGUMENT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_catalogue_has_one_row_an_item, setup, teardown),
        cmocka_unit_test_setup_teardown(a_video_is_one_row_of_several_items, setup, teardown),
        cmocka_unit_test_setup_teardown(an_adjacency_list_has_ids_as_qualifiers, setup, teardown),
        cmocka_unit_test_setup_teardown(templates, setup, teardown),
        cmocka_unit_test_setup_teardown(columns, setup, teardown),
        cmocka_unit_test_setup_teardown(a_list_is_versions_of_a_cell, setup, teardown),
        cmocka_unit_test_setup_teardown(expiring_items_are_dated_by_their_family, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_mappings_are_refused_with_their_place, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
