/* Tests of GQL: every production of its grammar, and every way to be refused. */
#include "datastore/gql/gql.h"

#include "base/testing/testing.h"
#include "datastore/testing/testing.h"
#include "wire/proto.h"

#include <stdio.h>

static const struct ds_database database = {.project = "p", .id = "d"};

static int make_arena(void **state)
{
    *state = arena_create(64 << 20);
    return *state == NULL;
}

static int free_arena(void **state)
{
    arena_destroy(*state);
    return 0;
}

static Ds__GqlQuery gql_of(const char *text)
{
    Ds__GqlQuery gql = DS__GQL_QUERY__INIT;
    gql.query_string = text;
    gql.allow_literals = true;
    return gql;
}

static void assert_query(struct arena *arena, const char *text, const char *expected)
{
    Ds__GqlQuery gql = gql_of(text);
    struct ds_gql out;
    assert_ok(ds_gql_parse(&gql, &database, "ns", arena, &out));
    assert_null(out.aggregation);
    assert_json(&out.query->base, expected);
}

struct example {
    const char *text, *expected;
};

/* Each example stands for the question mark in `text`, and its outcome for the one in `expected`.
 */
static void assert_examples(struct arena *arena, const struct example *examples, size_t count,
                            const char *text, const char *expected)
{
    for (size_t i = 0; i < count; i++) {
        struct buffer whole = {0}, json = {0};
        for (const char *at = text; *at != '\0'; at++)
            if (*at == '?')
                buffer_append_format(&whole, "%s", examples[i].text);
            else
                buffer_append_byte(&whole, (uint8_t)*at);
        for (const char *at = expected; *at != '\0'; at++)
            if (*at == '?')
                buffer_append_format(&json, "%s", examples[i].expected);
            else
                buffer_append_byte(&json, (uint8_t)*at);
        assert_query(arena, arena_string(arena, buffer_bytes(&whole)),
                     arena_string(arena, buffer_bytes(&json)));
        buffer_free(&whole);
        buffer_free(&json);
    }
}

#define COUNT(examples) (sizeof(examples) / sizeof((examples)[0]))

/* --- clauses --- */

static void test_what_is_selected(void **state)
{
    const struct example examples[] = {
        {"*", ""},
        {"__key__", "'projection':[{'property':{'name':'__key__'}}]"},
        {"a, b", "'projection':[{'property':{'name':'a'}},{'property':{'name':'b'}}]"},
        {"distinct a", "'projection':[{'property':{'name':'a'}}],'distinctOn':[{'name':'a'}]"},
        {"DISTINCT ON (a, b) *", "'distinctOn':[{'name':'a'},{'name':'b'}]"},
        {"DISTINCT ON (a) a,c",
         "'projection':[{'property':{'name':'a'}},{'property':{'name':'c'}}],"
         "'distinctOn':[{'name':'a'}]"},
    };
    assert_examples(*state, examples, COUNT(examples), "SELECT ?", "{?}");
}

static void test_names(void **state)
{
    const struct example examples[] = {
        {"K", "K"},           {"`a b`", "a b"},
        {"`Order`", "Order"}, {"`sil``ly\\`\\n`", "sil`ly`\\n"},
        {"x_1$", "x_1$"},     {"caf\xc3\xa9", "caf\xc3\xa9"},
        {"First", "First"},   {"key", "key"},
    };
    assert_examples(*state, examples, COUNT(examples), "Select * from\n?\t",
                    "{'kind':[{'name':'?'}]}");
}

static void test_properties_may_begin_with_their_kind(void **state)
{
    const struct example examples[] = {
        {"a", "a"},
        {"K.a", "a"},
        {"K.K.a", "K.a"},
        {"a . b", "a.b"},
        {"K.__key__", "__key__"},
        {"`K.a`", "K.a"},
        {"`K`.`a.b`", "a.b"},
        {"k.a", "k.a"},
        {"K", "K"},
    };
    assert_examples(*state, examples, COUNT(examples), "SELECT ? FROM K ORDER BY ?",
                    "{'projection':[{'property':{'name':'?'}}],'kind':[{'name':'K'}],"
                    "'order':[{'property':{'name':'?'},'direction':'ASCENDING'}]}");
    assert_query(*state, "SELECT K.a", "{'projection':[{'property':{'name':'K.a'}}]}");
}

static void test_orders(void **state)
{
    assert_query(*state, "SELECT * ORDER BY a, b DESC, c asc",
                 "{'order':[{'property':{'name':'a'},'direction':'ASCENDING'},"
                 "{'property':{'name':'b'},'direction':'DESCENDING'},"
                 "{'property':{'name':'c'},'direction':'ASCENDING'}]}");
}

static void test_all_clauses_together(void **state)
{
    assert_query(*state, "SELECT a FROM K WHERE b = 1 ORDER BY b LIMIT 5 OFFSET 2",
                 "{'projection':[{'property':{'name':'a'}}],'kind':[{'name':'K'}],"
                 "'filter':{'propertyFilter':{'property':{'name':'b'},'op':'EQUAL',"
                 "'value':{'integerValue':'1'}}},"
                 "'order':[{'property':{'name':'b'},'direction':'ASCENDING'}],"
                 "'offset':2,'limit':5}");
}

/* --- conditions --- */

#define A_IS        "{'filter':{'propertyFilter':{'property':{'name':'a'},'op':'EQUAL','value':?}}}"
#define SEVEN       "{'integerValue':'7'}"
#define ONE_AND_TWO "{'arrayValue':{'values':[{'integerValue':'1'},{'integerValue':'2'}]}}"

static void test_comparators(void **state)
{
    const struct {
        const char *text, *op, *value;
    } cases[] = {
        {"a = 7", "EQUAL", SEVEN},
        {"a != 7", "NOT_EQUAL", SEVEN},
        {"a<7", "LESS_THAN", SEVEN},
        {"a<=7", "LESS_THAN_OR_EQUAL", SEVEN},
        {"a>7", "GREATER_THAN", SEVEN},
        {"a >= 7", "GREATER_THAN_OR_EQUAL", SEVEN},
        {"a CONTAINS 7", "EQUAL", SEVEN},
        {"a is Null", "EQUAL", "{'nullValue':null}"},
        {"a IN ARRAY(1, 2)", "IN", ONE_AND_TWO},
        {"a in (1,2)", "IN", ONE_AND_TWO},
        {"a NOT IN ARRAY(1, 2)", "NOT_IN", ONE_AND_TWO},
        {"a NOT IN (1, 2)", "NOT_IN", ONE_AND_TWO},
        {"a HAS ANCESTOR 7", "HAS_ANCESTOR", SEVEN},
        {"7 = a", "EQUAL", SEVEN},
        {"7 != a", "NOT_EQUAL", SEVEN},
        {"7 < a", "GREATER_THAN", SEVEN},
        {"7 <= a", "GREATER_THAN_OR_EQUAL", SEVEN},
        {"7 > a", "LESS_THAN", SEVEN},
        {"7 >= a", "LESS_THAN_OR_EQUAL", SEVEN},
        {"7 IN a", "EQUAL", SEVEN},
        {"7 HAS DESCENDANT a", "HAS_ANCESTOR", SEVEN},
        {"ARRAY(1, 2) = a", "EQUAL", ONE_AND_TWO},
        {"((a = 7))", "EQUAL", SEVEN},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[100], expected[300];
        assert_true(snprintf(text, sizeof text, "SELECT * WHERE %s", cases[i].text) > 0);
        assert_true(snprintf(expected, sizeof expected,
                             "{'filter':{'propertyFilter':{'property':{'name':'a'},'op':'%s',"
                             "'value':%s}}}",
                             cases[i].op, cases[i].value) > 0);
        assert_query(*state, text, expected);
    }
}

/* A filter as text, without operators and values: `a`, (a&b), (a|b). */
static void append_filter(const Ds__Filter *filter, struct buffer *out)
{
    if (filter->filter_type_case == DS__FILTER__FILTER_TYPE_PROPERTY_FILTER) {
        buffer_append_format(out, "%s", filter->property_filter->property->name);
        return;
    }
    const Ds__CompositeFilter *composite = filter->composite_filter;
    for (size_t i = 0; i < composite->n_filters; i++) {
        bool is_or = composite->op == DS__COMPOSITE_FILTER__OPERATOR__OR;
        buffer_append_format(out, "%s", i == 0 ? "(" : is_or ? "|" : "&");
        append_filter(composite->filters[i], out);
    }
    buffer_append_format(out, ")");
}

static void test_and_binds_closer_than_or(void **state)
{
    const struct example examples[] = {
        {"a=1 AND b=1 AND c=1", "(a&b&c)"},     {"a=1 OR b=1 or c=1", "(a|b|c)"},
        {"a=1 OR b=1 AND c=1", "(a|(b&c))"},    {"a=1 AND b=1 OR c=1", "((a&b)|c)"},
        {"(a=1 OR b=1) AND c=1", "((a|b)&c)"},  {"a=1 AND (b=1 OR (c=1 AND d=1))", "(a&(b|(c&d)))"},
        {"a=1 AND (b=1 AND c=1)", "(a&(b&c))"},
    };
    for (size_t i = 0; i < COUNT(examples); i++) {
        char text[100];
        struct buffer shape = {0};
        struct ds_gql out;
        assert_true(snprintf(text, sizeof text, "SELECT * WHERE %s", examples[i].text) > 0);
        Ds__GqlQuery gql = gql_of(text);
        assert_ok(ds_gql_parse(&gql, &database, "", *state, &out));
        append_filter(out.query->filter, &shape);
        buffer_append_byte(&shape, '\0');
        assert_string_equal((const char *)shape.data, examples[i].expected);
        buffer_free(&shape);
    }
}

/* --- values --- */

static void test_literals(void **state)
{
    const struct example examples[] = {
        {"'x'", "{'stringValue':'x'}"},
        {"\"x\"", "{'stringValue':'x'}"},
        {"''", "{'stringValue':''}"},
        {"'a\"`b'", "{'stringValue':'a\\'`b'}"},
        {"\"a\"\"b\"", "{'stringValue':'a\\'b'}"},
        {"\"\\\\ \\b \\n \\r \\t \\% \\_ \\` \\\"\"",
         "{'stringValue':'\\\\ \\u0008 \\n \\u000d \\u0009 \\\\% \\\\_ ` \\''}"},
        {"'\\Z'", "{'stringValue':'\\u001a'}"},
        {"0", "{'integerValue':'0'}"},
        {"+5831", "{'integerValue':'5831'}"},
        {"-9223372036854775808", "{'integerValue':'-9223372036854775808'}"},
        {"9223372036854775807", "{'integerValue':'9223372036854775807'}"},
        {"0.5", "{'doubleValue':0.5}"},
        {"-3.", "{'doubleValue':-3}"},
        {"+.5", "{'doubleValue':0.5}"},
        {"25e-1", "{'doubleValue':2.5}"},
        {"6.5E+2", "{'doubleValue':650}"},
        {"true", "{'booleanValue':true}"},
        {"FALSE", "{'booleanValue':false}"},
        {"Null", "{'nullValue':null}"},
        {"BLOB('AP8')", "{'blobValue':'AP8='}"},
        {"blob('-_-_')", "{'blobValue':'+/+/'}"},
        {"BLOB('')", "{'blobValue':''}"},
        {"DATETIME('2013-09-29T09:30:20.00002-08:00')",
         "{'timestampValue':'2013-09-29T17:30:20.000020Z'}"},
        {"DATETIME(\"0001-01-01t00:00:00z\")", "{'timestampValue':'0001-01-01T00:00:00Z'}"},
        {"ARRAY(1, 'x')", "{'arrayValue':{'values':[{'integerValue':'1'},{'stringValue':'x'}]}}"},
    };
    assert_examples(*state, examples, COUNT(examples), "SELECT * WHERE a = ?", A_IS);
}

#define KEY(project, name_space, path)                                                             \
    "{'keyValue':{'partitionId':{'projectId':'" project "','databaseId':'d'" name_space            \
    "},'path':[" path "]}}"

static void test_keys(void **state)
{
    const struct example examples[] = {
        {"KEY(A, 1)", KEY("p", ",'namespaceId':'ns'", "{'kind':'A','id':'1'}")},
        {"key(A, 'x', `b c`, 2, First, \"y\")",
         KEY("p", ",'namespaceId':'ns'",
             "{'kind':'A','name':'x'},{'kind':'b c','id':'2'},{'kind':'First','name':'y'}")},
        {"KEY(NAMESPACE(''), A, 1)", KEY("p", "", "{'kind':'A','id':'1'}")},
        {"KEY(Project('q'), A, 1)", KEY("q", ",'namespaceId':'ns'", "{'kind':'A','id':'1'}")},
        {"KEY(PROJECT('q'), NAMESPACE('m'), A, 1)",
         KEY("q", ",'namespaceId':'m'", "{'kind':'A','id':'1'}")},
        {"KEY(Project, 1)", KEY("p", ",'namespaceId':'ns'", "{'kind':'Project','id':'1'}")},
        {"KEY(Namespace, 1)", KEY("p", ",'namespaceId':'ns'", "{'kind':'Namespace','id':'1'}")},
    };
    assert_examples(*state, examples, COUNT(examples), "SELECT * WHERE a = ?", A_IS);
}

/* --- aggregations --- */

static void assert_aggregation(struct arena *arena, const char *text, const char *expected)
{
    Ds__GqlQuery gql = gql_of(text);
    struct ds_gql out;
    assert_ok(ds_gql_parse(&gql, &database, "", arena, &out));
    assert_null(out.query);
    assert_json(&out.aggregation->base, expected);
}

static void test_aggregations(void **state)
{
    assert_aggregation(*state,
                       "AGGREGATE COUNT(*), count_up_to(5) AS n, SUM(K.a) AS `the sum`, AVG(b.c) "
                       "OVER (SELECT * FROM K LIMIT 5 OFFSET 1)",
                       "{'nestedQuery':{'kind':[{'name':'K'}],'offset':1,'limit':5},"
                       "'aggregations':[{'count':{}},{'count':{'upTo':'5'},'alias':'n'},"
                       "{'sum':{'property':{'name':'a'}},'alias':'the sum'},"
                       "{'avg':{'property':{'name':'b.c'}}}]}");
    assert_aggregation(*state, "SELECT COUNT(*) AS total, SUM(a) FROM K WHERE b IS NULL",
                       "{'nestedQuery':{'kind':[{'name':'K'}],'filter':{'propertyFilter':"
                       "{'property':{'name':'b'},'op':'EQUAL','value':{'nullValue':null}}}},"
                       "'aggregations':[{'count':{},'alias':'total'},"
                       "{'sum':{'property':{'name':'a'}}}]}");
    assert_aggregation(*state, "SELECT COUNT(*)",
                       "{'nestedQuery':{},'aggregations':[{'count':{}}]}");
}

/* --- bindings --- */

/* The bindings of a request. By name: 7, "x", two cursors; by position: 8, a cursor. */
struct bound {
    Ds__Value seven, text, eight;
    Ds__GqlQueryParameter parameters[6];
    Ds__GqlQuery__NamedBindingsEntry entries[4];
    Ds__GqlQuery__NamedBindingsEntry *names[4];
    Ds__GqlQueryParameter *positions[2];
    Ds__GqlQuery gql;
};

static void bind_value(Ds__GqlQueryParameter *parameter, Ds__Value *value)
{
    *parameter = (Ds__GqlQueryParameter)DS__GQL_QUERY_PARAMETER__INIT;
    parameter->parameter_type_case = DS__GQL_QUERY_PARAMETER__PARAMETER_TYPE_VALUE;
    parameter->value = value;
}

static void bind_cursor(Ds__GqlQueryParameter *parameter, const char *cursor)
{
    *parameter = (Ds__GqlQueryParameter)DS__GQL_QUERY_PARAMETER__INIT;
    parameter->parameter_type_case = DS__GQL_QUERY_PARAMETER__PARAMETER_TYPE_CURSOR;
    parameter->cursor = proto_data(bytes_of(cursor));
}

static void bind(struct bound *bound, struct arena *arena, const char *text)
{
    static const char *const names[] = {"seven", "x", "from", "to"};
    bound->seven = *test_value(arena, "{'integerValue': '7'}");
    bound->text = *test_value(arena, "{'stringValue': 'x'}");
    bound->eight = *test_value(arena, "{'integerValue': '8'}");
    bind_value(&bound->parameters[0], &bound->seven);
    bind_value(&bound->parameters[1], &bound->text);
    bind_cursor(&bound->parameters[2], "from");
    bind_cursor(&bound->parameters[3], "to");
    bind_value(&bound->parameters[4], &bound->eight);
    bind_cursor(&bound->parameters[5], "pos");
    for (size_t i = 0; i < 4; i++) {
        bound->entries[i] =
            (Ds__GqlQuery__NamedBindingsEntry)DS__GQL_QUERY__NAMED_BINDINGS_ENTRY__INIT;
        bound->entries[i].key = names[i];
        bound->entries[i].value = &bound->parameters[i];
        bound->names[i] = &bound->entries[i];
    }
    bound->positions[0] = &bound->parameters[4];
    bound->positions[1] = &bound->parameters[5];
    bound->gql = gql_of(text);
    bound->gql.allow_literals = false;
    bound->gql.n_named_bindings = 4;
    bound->gql.named_bindings = bound->names;
    bound->gql.positional_bindings = bound->positions;
}

static void assert_bound(struct arena *arena, const char *text, size_t positions,
                         const char *expected)
{
    struct bound bound;
    struct ds_gql out;
    bind(&bound, arena, text);
    bound.gql.n_positional_bindings = positions;
    assert_ok(ds_gql_parse(&bound.gql, &database, "", arena, &out));
    assert_json(&out.query->base, expected);
}

static void test_values_are_bound(void **state)
{
    const char *const seven = "{'filter':{'propertyFilter':{'property':{'name':'a'},"
                              "'op':'EQUAL','value':{'integerValue':'7'}}}}";
    assert_bound(*state, "SELECT * WHERE a = @seven", 0, seven);
    assert_bound(*state, "SELECT * WHERE @seven = a", 0, seven);
    assert_bound(*state, "SELECT * WHERE a = @1", 1,
                 "{'filter':{'propertyFilter':{'property':{'name':'a'},'op':'EQUAL',"
                 "'value':{'integerValue':'8'}}}}");
    assert_bound(*state, "SELECT * WHERE a IN (@1, @1, @x)", 1,
                 "{'filter':{'propertyFilter':{'property':{'name':'a'},'op':'IN',"
                 "'value':{'arrayValue':{'values':[{'integerValue':'8'},{'integerValue':'8'},"
                 "{'stringValue':'x'}]}}}}}");
}

static void test_limits_and_offsets(void **state)
{
    assert_bound(*state, "SELECT * LIMIT @seven OFFSET @1", 1, "{'offset':8,'limit':7}");
    assert_bound(*state, "SELECT * LIMIT @to OFFSET @from", 0,
                 "{'startCursor':'ZnJvbQ==','endCursor':'dG8='}");
    assert_bound(*state, "SELECT * LIMIT FIRST(@to, @seven)", 0, "{'endCursor':'dG8=','limit':7}");
    assert_bound(*state, "SELECT * LIMIT first (@1, @2)", 2, "{'endCursor':'cG9z','limit':8}");
    assert_bound(*state, "SELECT * OFFSET @from + @seven", 0,
                 "{'startCursor':'ZnJvbQ==','offset':7}");
    assert_query(*state, "SELECT * LIMIT +3 OFFSET -1", "{'offset':-1,'limit':3}");
}

static void test_the_last_of_a_name_counts(void **state)
{
    struct bound bound;
    struct ds_gql out;
    bind(&bound, *state, "SELECT * LIMIT @seven");
    bound.entries[1].key = "seven";
    bound.entries[1].value = &bound.parameters[4];
    assert_ok(ds_gql_parse(&bound.gql, &database, "", *state, &out));
    assert_int_equal(out.query->limit->value, 8);
}

/* --- what is refused --- */

static void assert_refused(struct arena *arena, const Ds__GqlQuery *gql, const char *words)
{
    struct ds_gql out;
    status s = ds_gql_parse(gql, &database, "", arena, &out);
    assert_string_equal(status_message(s), words);
    assert_status(s, STATUS_INVALID_ARGUMENT);
}

#define COMPARATORS                                                                                \
    "    \"contains\" ...\n    \"has\" ...\n    \"in\" ...\n    \"is\" ...\n    \"not\" ...\n"     \
    "    \"=\" ...\n    \"!=\" ...\n    \"<\" ...\n    \"<=\" ...\n    \">\" ...\n"                \
    "    \">=\" ...\n    \".\" ...\n    "
#define NAMES "    <UNQUOTED_NAME> ...\n    <QUOTED_NAME> ...\n    "
#define VALUES                                                                                     \
    "    \"false\" ...\n    \"null\" ...\n    \"true\" ...\n    <INTEGER> ...\n"                   \
    "    <DOUBLE> ...\n    <SINGLE_QUOTE_STRING> ...\n    <DOUBLE_QUOTE_STRING> ...\n"             \
    "    <UNQUOTED_NAME> ...\n    <NAMED_BINDING_SITE> ...\n    <NUMBERED_BINDING_SITE> ...\n    "

static void test_what_is_unexpected_is_named_with_its_place(void **state)
{
    const struct example cases[] = {
        {"", "Encountered \"<EOF>\" at line 0, column 0.\nWas expecting one of:\n"
             "    \"aggregate\" ...\n    \"select\" ...\n    "},
        {"UPDATE K", "Encountered \"UPDATE\" at line 1, column 1.\nWas expecting one of:\n"
                     "    \"aggregate\" ...\n    \"select\" ...\n    "},
        {"SELECT * FROM Order",
         "Encountered \"Order\" at line 1, column 15.\nWas expecting one of:\n" NAMES},
        {"SELECT * FROM\n  Having",
         "Encountered \"Having\" at line 2, column 3.\nWas expecting one of:\n" NAMES},
        {"SELECT * FROM",
         "Encountered \"<EOF>\" at line 1, column 13.\nWas expecting one of:\n" NAMES},
        {"SELECT * FROM K ORDER a",
         "Encountered \"a\" at line 1, column 23.\nWas expecting:\n    \"by\" ...\n    "},
        {"SELECT * WHERE \xc3\xa9 LIKE 5",
         "Encountered \"LIKE\" at line 1, column 18.\nWas expecting one of:\n" COMPARATORS},
        {"SELECT * WHERE a = ,",
         "Encountered \",\" at line 1, column 20.\nWas expecting one of:\n" VALUES},
        {"SELECT * WHERE a = KEY(K, @id)",
         "Encountered \"@id\" at line 1, column 27.\nWas expecting one of:\n    <INTEGER> ...\n"
         "    <SINGLE_QUOTE_STRING> ...\n    <DOUBLE_QUOTE_STRING> ...\n    "},
        {"SELECT * OFFSET 1 'x\xc3\xa9'",
         "Encountered \"\\'x\\u00e9\\'\" at line 1, column 19.\nWas expecting one of:\n"
         "    <EOF> ...\n    \"+\" ...\n    "},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        Ds__GqlQuery gql = gql_of(cases[i].text);
        assert_refused(*state, &gql, cases[i].expected);
    }
}

/* Each is refused at the place where the stroke is; without it the text is the query. */
static void test_texts_outside_the_grammar_are_refused(void **state)
{
    const char *const texts[] = {
        "SELECT |FROM K",
        "SELECT DISTINCT |*",
        "SELECT DISTINCT ON |a a",
        "SELECT a |b",
        "SELECT * FROM |'K'",
        "SELECT * FROM K|, L",
        "SELECT * FROM K|.a",
        "SELECT * WHERE a = 1 |a = 2",
        "SELECT * WHERE (a = 1|",
        "SELECT * WHERE a |BETWEEN 1 AND 2",
        "SELECT * WHERE a IS |NOT NULL",
        "SELECT * WHERE NULL |IS a",
        "SELECT * WHERE |NOT a = 1",
        "SELECT * WHERE 1 |CONTAINS a",
        "SELECT * WHERE 1 |NOT IN a",
        "SELECT * WHERE a HAS |DESCENDANT 1",
        "SELECT * WHERE 1 HAS |ANCESTOR a",
        "SELECT * WHERE a = |`b`",
        "SELECT * WHERE a = ARRAY(|)",
        "SELECT * WHERE a = ARRAY(1|",
        "SELECT * WHERE a = KEY(|)",
        "SELECT * WHERE a = KEY(|'K', 1)",
        "SELECT * WHERE a = KEY(K|)",
        "SELECT * WHERE a = KEY(K, 1, NAMESPACE|('n'), K, 1)",
        "SELECT * WHERE a = KEY(NAMESPACE('n'), PROJECT|('p'), K, 1)",
        "SELECT * WHERE a = BLOB(|1)",
        "SELECT * WHERE a|.5 = 1",
        "SELECT * ORDER BY a |b",
        "SELECT * OFFSET 1 |LIMIT 1",
        "SELECT * LIMIT |'1'",
        "SELECT * LIMIT FIRST(1|)",
        "SELECT * |GROUP BY a",
        "SELECT COUNT(*) FROM K |LIMIT 5",
        "SELECT COUNT(*), |a",
        "SELECT COUNT(|a)",
        "SELECT COUNT_UP_TO(|*)",
        "SELECT COUNT(*) AS |'a'",
        "AGGREGATE |a OVER (SELECT *)",
        "AGGREGATE COUNT(*) |(SELECT *)",
        "AGGREGATE COUNT(*) OVER |SELECT *",
        "AGGREGATE COUNT(*) OVER (SELECT |COUNT(*))",
        "AGGREGATE COUNT(*) OVER (SELECT *|",
        "AGGREGATE COUNT(*) OVER (SELECT *) |LIMIT 1",
    };
    for (size_t i = 0; i < COUNT(texts); i++) {
        char text[100], place[40];
        const char *stroke = strchr(texts[i], '|');
        size_t before = (size_t)(stroke - texts[i]);
        /* Behind the last token is the end, which is said to be at the last character. */
        size_t column = stroke[1] == '\0' ? before : before + 1;
        assert_true(snprintf(text, sizeof text, "%.*s%s", (int)before, texts[i], stroke + 1) > 0);
        assert_true(snprintf(place, sizeof place, "\" at line 1, column %zu.\n", column) > 0);
        Ds__GqlQuery gql = gql_of(text);
        struct ds_gql out;
        status s = ds_gql_parse(&gql, &database, "", *state, &out);
        if (strstr(status_message(s), place) == NULL)
            print_error("%s: %s\n", text, status_message(s));
        assert_non_null(strstr(status_message(s), place));
        assert_status(s, STATUS_INVALID_ARGUMENT);
    }
}

static void test_what_is_no_token(void **state)
{
    const struct example cases[] = {
        {"SELECT * FROM #", "line 1, column 15.  Encountered: \"#\" (35), after : \"\""},
        {"SELECT *;", "line 1, column 9.  Encountered: \";\" (59), after : \"\""},
        {"SELECT * WHERE a = 'x", "line 1, column 21.  Encountered: <EOF> after : \"\\'x\""},
        {"SELECT * WHERE a = 'x\n'",
         "line 1, column 22.  Encountered: \"\\n\" (10), after : \"\\'x\""},
        {"SELECT * WHERE a = 'x\\R'",
         "line 1, column 23.  Encountered: \"R\" (82), after : \"\\'x\\\\\""},
        {"SELECT `", "line 1, column 8.  Encountered: <EOF> after : \"`\""},
        {"SELECT * WHERE a = -x", "line 1, column 21.  Encountered: \"x\" (120), after : \"-\""},
        {"SELECT * WHERE a ! 1", "line 1, column 19.  Encountered: \" \" (32), after : \"!\""},
        {"SELECT * WHERE a = @", "line 1, column 20.  Encountered: <EOF> after : \"@\""},
        {"SELECT * WHERE a = @\xc3\xa9",
         "line 1, column 21.  Encountered: \"\\u00e9\" (233), after : \"@\""},
        {"SELECT a\xf0\x9f\x98\x80",
         "line 1, column 9.  Encountered: \"\\ud83d\\ude00\" (128512), after : \"\""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char words[200];
        Ds__GqlQuery gql = gql_of(cases[i].text);
        assert_true(snprintf(words, sizeof words, "Lexical error at %s", cases[i].expected) > 0);
        assert_refused(*state, &gql, words);
    }
}

static void test_values_that_are_none(void **state)
{
    const struct example cases[] = {
        {"string", "Unknown function \"string\"."},
        {"GEOPT(1, 2)", "Unknown function \"GEOPT\"."},
        {"9223372036854775808", "The integer does not fit into 64 bits: \"9223372036854775808\" "
                                "at line 1, column 20."},
        {"1e999", "The number is too large: \"1e999\" at line 1, column 20."},
        {"'\\0'", "Null characters are not supported: \"'\\0'\" at line 1, column 20."},
        {"KEY(``, 1)", "A name must not be empty: \"``\" at line 1, column 24."},
        {"KEY(K, 0)", "A key's id must be greater than 0: \"0\" at line 1, column 27."},
        {"KEY(K, -1)", "A key's id must be greater than 0: \"-1\" at line 1, column 27."},
        {"KEY(K, '')", "A key's name must not be empty: \"''\" at line 1, column 27."},
        {"BLOB('AP8=')", "Invalid blob text: \"AP8=\"."},
        {"BLOB('+/')", "Invalid blob text: \"+/\"."},
        {"BLOB('A')", "Invalid blob text: \"A\"."},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[100];
        assert_true(snprintf(text, sizeof text, "SELECT * WHERE a = %s", cases[i].text) > 0);
        Ds__GqlQuery gql = gql_of(text);
        assert_refused(*state, &gql, cases[i].expected);
    }
}

static void test_datetimes_that_are_none(void **state)
{
    const char *const bad[] = {
        "",
        "2013-09-29",
        "2013-09-29 09:30:20Z",
        "2013-09-29T09:30:20",
        "2013-02-29T09:30:20Z",
        "2013-09-29T09:30:60Z",
        "2013-09-29T09:30:20.Z",
        "2013-09-29T09:30:20.1234567Z",
        "2013-09-29T09:30:20+00:00",
        "2013-09-29T09:30:20.5-00:00",
        "0000-09-29T09:30:20Z",
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        char text[100], words[200];
        assert_true(snprintf(text, sizeof text, "SELECT * WHERE a = DATETIME('%s')", bad[i]) > 0);
        assert_true(snprintf(words, sizeof words,
                             "A datetime must be as in RFC 3339, with at most 6 decimals: \"'%s'\" "
                             "at line 1, column 29.",
                             bad[i]) > 0);
        Ds__GqlQuery gql = gql_of(text);
        assert_refused(*state, &gql, words);
    }
}

static void test_literals_may_be_disallowed(void **state)
{
    const struct example cases[] = {
        {"SELECT * WHERE a = 'Blackwell'", "Disallowed literal: 'Blackwell'."},
        {"SELECT * WHERE __key__ HAS ANCESTOR key(o, 's')", "Disallowed literal: key."},
        {"SELECT * WHERE 5 < a", "Disallowed literal: 5."},
        {"SELECT * WHERE a = 5.5", "Disallowed literal: 5.5."},
        {"SELECT * WHERE a = true", "Disallowed literal: true."},
        {"SELECT * WHERE a = NULL", "Disallowed literal: NULL."},
        {"SELECT * WHERE a IN ARRAY(1)", "Disallowed literal: 1."},
        {"SELECT * WHERE a = BLOB('')", "Disallowed literal: BLOB."},
        {"SELECT * WHERE a = DATETIME('')", "Disallowed literal: DATETIME."},
        {"SELECT * LIMIT 10", "Disallowed literal: 10."},
        {"SELECT * OFFSET 1", "Disallowed literal: 1."},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        Ds__GqlQuery gql = gql_of(cases[i].text);
        gql.allow_literals = false;
        assert_refused(*state, &gql, cases[i].expected);
    }
    const char *const good[] = {"SELECT * WHERE a IS NULL", "SELECT COUNT_UP_TO(5)"};
    for (size_t i = 0; i < COUNT(good); i++) {
        Ds__GqlQuery gql = gql_of(good[i]);
        struct ds_gql out;
        gql.allow_literals = false;
        assert_ok(ds_gql_parse(&gql, &database, "", *state, &out));
    }
}

static void test_bindings_and_sites_must_match(void **state)
{
    const struct {
        const char *text;
        size_t positions;
        const char *words;
    } cases[] = {
        {"SELECT * WHERE a = @b", 0, "Absent named binding: b."},
        {"SELECT * WHERE a = @0", 0, "Invalid binding site @0."},
        {"SELECT * WHERE a = @2", 1, "Absent positional binding: 2."},
        {"SELECT * WHERE a = @99999999999999999999", 1,
         "Absent positional binding: 99999999999999999999."},
        {"SELECT * OFFSET @2", 2, "Unused positional binding: 1."},
        {"SELECT * WHERE a = @from", 0,
         "A value is wanted, and the site is bound to a cursor: \"@from\" at line 1, column 20."},
        {"SELECT * LIMIT @x", 0,
         "The site must be bound to an integer or a cursor: \"@x\" at line 1, column 16."},
        {"SELECT * LIMIT FIRST(@from, @to)", 0,
         "FIRST takes a cursor and an integer, not two of one sort: \"@to\" at line 1, column 29."},
        {"SELECT * LIMIT FIRST(@seven, @seven)", 0,
         "FIRST takes a cursor and an integer, not two of one sort: \"@seven\" at line 1, "
         "column 30."},
        {"SELECT * OFFSET @from + @to", 0,
         "An integer is wanted behind the cursor: \"@to\" at line 1, column 25."},
        {"SELECT * OFFSET @seven + @seven", 0,
         "A cursor is wanted before the +: \"@seven\" at line 1, column 17."},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct bound bound;
        bind(&bound, *state, cases[i].text);
        bound.gql.n_positional_bindings = cases[i].positions;
        assert_refused(*state, &bound.gql, cases[i].words);
    }
}

static void test_bindings_that_are_none(void **state)
{
    const struct example cases[] = {
        {"", "GQL query parameter name \"\" contains an invalid character."},
        {"1", "GQL query parameter name \"1\" contains an invalid character."},
        {"a b", "GQL query parameter name \"a b\" contains an invalid character."},
        {"caf\xc3\xa9", "GQL query parameter name \"caf\xc3\xa9\" contains an invalid character."},
        {"__x__", "The GQL query parameter name \"__x__\" is reserved."},
    };
    struct bound bound;
    for (size_t i = 0; i < COUNT(cases); i++) {
        bind(&bound, *state, "SELECT *");
        bound.entries[0].key = cases[i].text;
        assert_refused(*state, &bound.gql, cases[i].expected);
    }
    bind(&bound, *state, "SELECT *");
    bound.entries[0].value = NULL;
    assert_refused(*state, &bound.gql, "The binding \"seven\" has neither a value nor a cursor.");
    bind(&bound, *state, "SELECT * LIMIT @1");
    bound.gql.n_positional_bindings = 1;
    bound.eight.value_type_case = DS__VALUE__VALUE_TYPE__NOT_SET;
    assert_refused(*state, &bound.gql, "The binding 1 has neither a value nor a cursor.");
}

static void test_numbers_have_bounds(void **state)
{
    Ds__GqlQuery gql = gql_of("SELECT * LIMIT 2147483648");
    assert_refused(*state, &gql,
                   "The number does not fit into 32 bits: \"2147483648\" at line 1, column 16.");
    gql = gql_of("SELECT * OFFSET -2147483649");
    assert_refused(*state, &gql,
                   "The number does not fit into 32 bits: \"-2147483649\" at line 1, column 17.");
    gql = gql_of("SELECT COUNT_UP_TO(9223372036854775808)");
    assert_refused(*state, &gql,
                   "The integer does not fit into 64 bits: \"9223372036854775808\" at line 1, "
                   "column 20.");
}

/* A + and digits are one integer, so that nothing is between the cursor and it. */
static void test_a_plus_belongs_to_the_digits_behind_it(void **state)
{
    struct bound bound;
    bind(&bound, *state, "SELECT * OFFSET @from +17");
    bound.gql.allow_literals = true;
    assert_refused(*state, &bound.gql,
                   "Encountered \"+17\" at line 1, column 23.\nWas expecting one of:\n"
                   "    <EOF> ...\n    \"+\" ...\n    ");
    bound.gql.query_string = "SELECT * OFFSET @from + +17";
    struct ds_gql out;
    assert_ok(ds_gql_parse(&bound.gql, &database, "", *state, &out));
    assert_int_equal(out.query->offset, 17);
}

static char *repeated(struct arena *arena, const char *before, const char *part, size_t count,
                      const char *middle, const char *close)
{
    struct buffer text = {0};
    buffer_append_format(&text, "%s", before);
    for (size_t i = 0; i < count; i++)
        buffer_append_format(&text, "%s", part);
    buffer_append_format(&text, "%s", middle);
    for (size_t i = 0; i < count; i++)
        buffer_append_format(&text, "%s", close);
    char *copy = arena_string(arena, buffer_bytes(&text));
    assert_non_null(copy);
    buffer_free(&text);
    return copy;
}

/* As deep as may be, what comes out is a message that can be sent. */
static void test_nesting_has_a_limit(void **state)
{
    for (size_t deeper = 0; deeper < 2; deeper++) {
        const char *const texts[] = {
            repeated(*state, "SELECT * WHERE ", "b = 1 OR c = 1 AND (",
                     DS_GQL_NESTING_LIMIT + deeper, "a = 1", ")"),
            repeated(*state, "SELECT * WHERE a = ", "ARRAY(", DS_GQL_NESTING_LIMIT + deeper, "1",
                     ")"),
            repeated(*state, "SELECT * WHERE ", "(", DS_GQL_NESTING_LIMIT + deeper, "a = 1", ")"),
        };
        for (size_t i = 0; i < COUNT(texts); i++) {
            Ds__GqlQuery gql = gql_of(texts[i]);
            struct ds_gql out;
            struct buffer wire = {0};
            ProtobufCMessage *again;
            status s = ds_gql_parse(&gql, &database, "", *state, &out);
            assert_true(deeper == 0 || strstr(status_message(s), "nested too deeply") != NULL);
            assert_status(s, deeper == 0 ? STATUS_OK : STATUS_INVALID_ARGUMENT);
            if (deeper > 0)
                continue;
            proto_encode(&out.query->base, &wire);
            assert_ok(proto_decode(&ds__query__descriptor, buffer_bytes(&wire), *state, &again));
            buffer_free(&wire);
        }
    }
}

/* Side by side is not in one another. */
static void test_groups_and_arrays_may_be_many(void **state)
{
    const char *const texts[] = {
        repeated(*state, "SELECT * WHERE ", "(a = 1) AND ", 2 * DS_GQL_NESTING_LIMIT, "a = 1", ""),
        repeated(*state, "SELECT * WHERE ", "a = ARRAY(1) OR ", 2 * DS_GQL_NESTING_LIMIT, "a = 1",
                 ""),
    };
    for (size_t i = 0; i < COUNT(texts); i++) {
        Ds__GqlQuery gql = gql_of(texts[i]);
        struct ds_gql out;
        assert_ok(ds_gql_parse(&gql, &database, "", *state, &out));
        assert_int_equal(out.query->filter->composite_filter->n_filters,
                         2 * DS_GQL_NESTING_LIMIT + 1);
    }
}

static void test_long_texts_are_shown_in_part(void **state)
{
    char *text = repeated(*state, "SELECT * ", "\xc3\xa9", 1000, "", "");
    Ds__GqlQuery gql = gql_of(text);
    struct ds_gql out;
    status s = ds_gql_parse(&gql, &database, "", *state, &out);
    assert_non_null(strstr(status_message(s), "\\u00e9\" at line 1, column 10."));
    assert_true(strlen(status_message(s)) < 1000);
    assert_status(s, STATUS_INVALID_ARGUMENT);
}

static void test_without_memory_it_fails(void **state)
{
    (void)state;
    Ds__GqlQuery gql = gql_of("SELECT a, b FROM K WHERE c = KEY(A, 'x') AND d IN (1, 2) LIMIT 5");
    for (size_t limit = 0; limit < 1 << 14; limit += 16) {
        struct arena *arena = arena_create(limit);
        struct ds_gql out;
        if (arena == NULL)
            continue;
        status s = ds_gql_parse(&gql, &database, "", arena, &out);
        bool is_ok = status_is_ok(s);
        if (!is_ok)
            assert_int_equal(s.code, STATUS_RESOURCE_EXHAUSTED);
        status_free(s);
        arena_destroy(arena);
        if (is_ok)
            return;
    }
    fail();
}

/* --- of requests --- */

static void test_a_request_has_a_query_or_gql(void **state)
{
    Ds__RunQueryRequest request = DS__RUN_QUERY_REQUEST__INIT;
    Ds__PartitionId partition = DS__PARTITION_ID__INIT;
    Ds__Query query = DS__QUERY__INIT, *out = NULL;
    assert_status(ds_query_of_request(&request, &database, *state, &out), STATUS_INVALID_ARGUMENT);
    request.query_type_case = DS__RUN_QUERY_REQUEST__QUERY_TYPE_QUERY;
    request.query = &query;
    assert_ok(ds_query_of_request(&request, &database, *state, &out));
    assert_ptr_equal(out, &query);
    Ds__GqlQuery gql = gql_of("SELECT * WHERE a = KEY(A, 1)");
    request.query_type_case = DS__RUN_QUERY_REQUEST__QUERY_TYPE_GQL_QUERY;
    request.gql_query = &gql;
    request.partition_id = &partition;
    partition.namespace_id = "ns";
    assert_ok(ds_query_of_request(&request, &database, *state, &out));
    const Ds__Key *key = out->filter->property_filter->value->key_value;
    assert_string_equal(key->partition_id->namespace_id, "ns");
    gql = gql_of("SELECT COUNT(*)");
    status s = ds_query_of_request(&request, &database, *state, &out);
    assert_string_equal(status_message(s),
                        "An aggregation query must be sent to RunAggregationQuery.");
    assert_status(s, STATUS_INVALID_ARGUMENT);
}

static void test_a_request_has_an_aggregation_or_gql(void **state)
{
    Ds__RunAggregationQueryRequest request = DS__RUN_AGGREGATION_QUERY_REQUEST__INIT;
    Ds__AggregationQuery query = DS__AGGREGATION_QUERY__INIT, *out = NULL;
    assert_status(ds_query_of_aggregation_request(&request, &database, *state, &out),
                  STATUS_INVALID_ARGUMENT);
    request.query_type_case = DS__RUN_AGGREGATION_QUERY_REQUEST__QUERY_TYPE_AGGREGATION_QUERY;
    request.aggregation_query = &query;
    assert_ok(ds_query_of_aggregation_request(&request, &database, *state, &out));
    assert_ptr_equal(out, &query);
    Ds__GqlQuery gql = gql_of("SELECT COUNT(*)");
    request.query_type_case = DS__RUN_AGGREGATION_QUERY_REQUEST__QUERY_TYPE_GQL_QUERY;
    request.gql_query = &gql;
    assert_ok(ds_query_of_aggregation_request(&request, &database, *state, &out));
    assert_int_equal(out->n_aggregations, 1);
    gql = gql_of("SELECT *");
    status s = ds_query_of_aggregation_request(&request, &database, *state, &out);
    assert_string_equal(status_message(s),
                        "A query without aggregations must be sent to RunQuery.");
    assert_status(s, STATUS_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_selected),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_properties_may_begin_with_their_kind),
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_all_clauses_together),
        cmocka_unit_test(test_comparators),
        cmocka_unit_test(test_and_binds_closer_than_or),
        cmocka_unit_test(test_literals),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_aggregations),
        cmocka_unit_test(test_values_are_bound),
        cmocka_unit_test(test_limits_and_offsets),
        cmocka_unit_test(test_the_last_of_a_name_counts),
        cmocka_unit_test(test_what_is_unexpected_is_named_with_its_place),
        cmocka_unit_test(test_texts_outside_the_grammar_are_refused),
        cmocka_unit_test(test_what_is_no_token),
        cmocka_unit_test(test_values_that_are_none),
        cmocka_unit_test(test_datetimes_that_are_none),
        cmocka_unit_test(test_literals_may_be_disallowed),
        cmocka_unit_test(test_bindings_and_sites_must_match),
        cmocka_unit_test(test_bindings_that_are_none),
        cmocka_unit_test(test_numbers_have_bounds),
        cmocka_unit_test(test_a_plus_belongs_to_the_digits_behind_it),
        cmocka_unit_test(test_nesting_has_a_limit),
        cmocka_unit_test(test_groups_and_arrays_may_be_many),
        cmocka_unit_test(test_long_texts_are_shown_in_part),
        cmocka_unit_test(test_without_memory_it_fails),
        cmocka_unit_test(test_a_request_has_a_query_or_gql),
        cmocka_unit_test(test_a_request_has_an_aggregation_or_gql),
    };
    return cmocka_run_group_tests(tests, make_arena, free_arena);
}
