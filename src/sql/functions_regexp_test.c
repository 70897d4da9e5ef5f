/* Functions with regular expressions: functions_regexp.c. */
#include "sql/expression_testing.h"

#define ERROR(words) "OUT_OF_RANGE: " words
#define TOO_MANY_GROUPS                                                                            \
    ERROR("Regular expressions passed into extraction functions must not have more than 1 "        \
          "capturing group")

static void parts_are_found(void **state)
{
    (void)state;
    static const struct expression_case cases[] = {
        {"REGEXP_CONTAINS('foo@example.com', r'@[a-z]+\\.')", "true", "a part matches"},
        {"REGEXP_CONTAINS('www.example.net', r'@')", "false", "no part matches"},
        {"REGEXP_CONTAINS('ab', r'^b')", "false", "anchored"},
        {"REGEXP_CONTAINS('ab', r'^ab$')", "true", "anchored at both ends"},
        {"REGEXP_CONTAINS('', '')", "true", "both empty"},
        {"REGEXP_CONTAINS('é', r'^.$')", "true", "a character"},
        {"REGEXP_CONTAINS(b'é', rb'^.$')", "false", "not a byte"},
        {"REGEXP_CONTAINS(b'\\xff\\x00', rb'^\\xff.$')", "true", "bytes above 127"},
        {"REGEXP_CONTAINS('É', r'(?i)^é$')", "true", "in any case"},
        {"REGEXP_CONTAINS('a\\nb', r'a.b')", "false", "the dot is no newline"},
        {"REGEXP_CONTAINS('a\\nb', r'(?s)a.b')", "true", "unless it is said"},
        {"REGEXP_CONTAINS('ab', r'(a)(b)')", "true", "any number of groups"},
        {"REGEXP_CONTAINS('a', NULL)", "NULL", "NULL"},
        {"REGEXP_CONTAINS('a', '(')", ERROR("Cannot parse regular expression: missing ): ("),
         "no expression"},
        {"SAFE.REGEXP_CONTAINS('a', '(')", "NULL", "SAFE"},
        {"REGEXP_CONTAINS('a', r'(?=a)')",
         ERROR("Cannot parse regular expression: invalid perl operator: (?="), "no lookahead"},
        {"REGEXP_EXTRACT('foo@example.com', r'^[a-zA-Z0-9_.+-]+')", "\"foo\"", "the match"},
        {"REGEXP_EXTRACT('foo@example.com', r'^[a-z]+@([a-z]+)')", "\"example\"", "its group"},
        {"REGEXP_EXTRACT('ab', '(.)b')", "\"a\"", "its group"},
        {"REGEXP_EXTRACT('xyztb', '(.)+b')", "\"t\"", "the last of a group"},
        {"REGEXP_EXTRACT('ab', '(z)?b')", "NULL", "a group without part"},
        {"REGEXP_EXTRACT('ab', '(z*)b')", "\"\"", "an empty group"},
        {"REGEXP_EXTRACT('ab', 'z')", "NULL", "no match"},
        {"REGEXP_EXTRACT('', '')", "\"\"", "both empty"},
        {"REGEXP_EXTRACT('ab', '(?:a)(b)')", "\"b\"", "a group that is none"},
        {"REGEXP_EXTRACT('ab', '(a)(b)')", TOO_MANY_GROUPS, "two groups"},
        {"REGEXP_EXTRACT('Hello Helloo and Hellooo', r'H?ello+', 1, 1)", "\"Hello\"", "first"},
        {"REGEXP_EXTRACT('Hello Helloo and Hellooo', r'H?ello+', 1, 2)", "\"Helloo\"", "second"},
        {"REGEXP_EXTRACT('Hello Helloo and Hellooo', r'H?ello+', 1, 4)", "NULL", "no fourth"},
        {"REGEXP_EXTRACT('Hello Helloo and Hellooo', r'H?ello+', 2, 1)", "\"ello\"", "from 2"},
        {"REGEXP_EXTRACT('Hello Helloo and Hellooo', r'H?ello+', 3, 1)", "\"Helloo\"", "from 3"},
        {"REGEXP_EXTRACT('Hello Helloo and Hellooo', r'H?ello+', 20, 1)", "NULL", "from 20"},
        {"REGEXP_EXTRACT('abc', r'.', 4)", "NULL", "at the end"},
        {"REGEXP_EXTRACT('abc', r'', 9)", "NULL", "behind the text"},
        {"REGEXP_EXTRACT('ééa', r'.', 3)", "\"a\"", "positions are characters"},
        {"REGEXP_EXTRACT(b'ab\\xff', rb'.', 3)", "b\"\\xff\"", "bytes"},
        {"REGEXP_EXTRACT('aba', r'^a', 3)", "NULL", "the anchor is the text's"},
        {"REGEXP_EXTRACT('a', 'a', 0)", ERROR("Position must be positive"), "no place 0"},
        {"REGEXP_EXTRACT('a', 'a', -1)", ERROR("Position must be positive"), "none before"},
        {"REGEXP_EXTRACT('a', 'a', 1, 0)", ERROR("Occurrence must be positive"), "no match 0"},
        {"REGEXP_EXTRACT(NULL, 'a')", "NULL", "NULL"},
        {"REGEXP_EXTRACT('é', r'\\C')", ERROR("The regular expression divides a character"),
         "a STRING stays one"},
        {"REGEXP_SUBSTR('Hello World', r'W\\w+')", "\"World\"", "another name"},
        {"REGEXP_EXTRACT_ALL('123456', r'\\d(\\d)\\d')", "[\"2\", \"5\"]", "all groups"},
        {"REGEXP_EXTRACT_ALL('Try `f(x)` or `g(x)`', '`(.+?)`')", "[\"f(x)\", \"g(x)\"]", "groups"},
        {"REGEXP_EXTRACT_ALL('ab', 'z')", "[]", "none"},
        {"REGEXP_EXTRACT_ALL('aaa', 'aa')", "[\"aa\"]", "matches do not overlap"},
        {"REGEXP_EXTRACT_ALL('éb', '')", "[\"\", \"\", \"\"]", "nothing, before each character"},
        {"REGEXP_EXTRACT_ALL('ab', '(z)?[ab]')", "[\"\", \"\"]", "groups without part"},
        {"REGEXP_EXTRACT_ALL(b'\\xff\\xfe', b'.')", "[b\"\\xff\", b\"\\xfe\"]", "bytes"},
        {"REGEXP_EXTRACT_ALL(REPEAT('ab', 50), '.')[99]", "\"b\"", "many"},
        {"REGEXP_EXTRACT_ALL('ab', '(a)(b)')", TOO_MANY_GROUPS, "two groups"},
        {"REGEXP_EXTRACT_ALL(NULL, 'a')", "NULL", "NULL"},
        {"REGEXP_INSTR('ab@cd-ef', '@[^-]*')", "3", "where it begins"},
        {"REGEXP_INSTR('ab@d-ef', '@[^-]*')", "3", "where it begins"},
        {"REGEXP_INSTR('abc@cd-ef', '@[^-]*')", "4", "where it begins"},
        {"REGEXP_INSTR('abc-ef', '@[^-]*')", "0", "none"},
        {"REGEXP_INSTR('a@cd-ef b@cd-ef', '@[^-]*', 1)", "2", "from 1"},
        {"REGEXP_INSTR('a@cd-ef b@cd-ef', '@[^-]*', 2)", "2", "from 2"},
        {"REGEXP_INSTR('a@cd-ef b@cd-ef', '@[^-]*', 3)", "10", "from 3"},
        {"REGEXP_INSTR('a@cd-ef b@cd-ef', '@[^-]*', 11)", "0", "from 11"},
        {"REGEXP_INSTR('a@cd-ef b@cd-ef c@cd-ef', '@[^-]*', 1, 2)", "10", "the second"},
        {"REGEXP_INSTR('a@cd-ef', '@[^-]*', 1, 1, 0)", "2", "where it begins"},
        {"REGEXP_INSTR('a@cd-ef', '@[^-]*', 1, 1, 1)", "5", "what is after it"},
        {"REGEXP_INSTR('a@cd-ef', '@[^-]*', 1, 1, 2)", ERROR("Invalid return_position"), "0 or 1"},
        {"REGEXP_INSTR('éab', 'a(b)')", "3", "its group, in characters"},
        {"REGEXP_INSTR(b'\\xff\\x00', b'\\x00')", "2", "bytes"},
        {"REGEXP_INSTR('ab', '(z)?b')", "0", "a group without part"},
        {"REGEXP_INSTR('a', 'a', 0)", ERROR("Position must be positive"), "no place 0"},
        {"REGEXP_INSTR(NULL, 'a')", "NULL", "NULL"},
    };
    CHECK_EXPRESSIONS(cases);
}

static void parts_are_replaced(void **state)
{
    (void)state;
    static const struct expression_case cases[] = {
        {"REGEXP_REPLACE('Jane Doe', r'^([\\p{L}\\x27-]+)\\s+([\\p{L}\\x27-]+)$', r'\\2, \\1')",
         "\"Doe, Jane\"", "groups"},
        {"REGEXP_REPLACE('# Heading', r'^# ([a-zA-Z0-9\\s]+$)', r'<h1>\\1</h1>')",
         "\"<h1>Heading</h1>\"", "a group"},
        {"REGEXP_REPLACE('abcabc', 'b', 'x')", "\"axcaxc\"", "all"},
        {"REGEXP_REPLACE('abc', 'b', r'[\\0]')", "\"a[b]c\"", "the match"},
        {"REGEXP_REPLACE('abc', 'b', '')", "\"ac\"", "by nothing"},
        {"REGEXP_REPLACE('abc', 'z', 'x')", "\"abc\"", "none"},
        {"REGEXP_REPLACE('abc', '', '-')", "\"-a-b-c-\"", "between all"},
        {"REGEXP_REPLACE('éa', '', '-')", "\"-é-a-\"", "between characters"},
        {"REGEXP_REPLACE('abc', 'b*', '-')", "\"-a-c-\"", "none that is empty after another"},
        {"REGEXP_REPLACE('', '^', 'x')", "\"x\"", "of the empty text"},
        {"REGEXP_REPLACE('ab', '(z)?b', r'[\\1]')", "\"a[]\"", "a group without part"},
        {"REGEXP_REPLACE('a', 'a', r'\\\\')", "\"\\\\\"", "a backslash"},
        {"REGEXP_REPLACE('a', 'a', r'\\\\0')", "\"\\\\0\"", "a backslash before a digit"},
        {"REGEXP_REPLACE('abcdefghi', '(a)(b)(c)(d)(e)(f)(g)(h)(i)', r'\\9\\8')", "\"ih\"",
         "nine groups"},
        {"REGEXP_REPLACE('abcdefghij', '(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)', r'\\1')", "\"a\"",
         "ten groups"},
        {"REGEXP_REPLACE(b'a\\xffb', rb'\\xff', b'\\x00')", "b\"a\\x00b\"", "bytes"},
        {"REGEXP_REPLACE('ÀÉ', r'\\p{Lu}', 'x')", "\"xx\"", "classes of Unicode"},
        {"REGEXP_REPLACE('a', NULL, 'b')", "NULL", "NULL"},
        {"REGEXP_REPLACE('a', 'a', r'\\1')",
         ERROR("Invalid REGEXP_REPLACE replacement: it requests group 1, but the regular "
               "expression only has 0"),
         "no such group"},
        {"REGEXP_REPLACE('a', 'a', r'\\x')",
         ERROR("Invalid REGEXP_REPLACE replacement: \\ must be followed by a digit or \\"),
         "no other escape"},
        {"REGEXP_REPLACE('a', 'a', '\\\\')",
         ERROR("Invalid REGEXP_REPLACE replacement: \\ not allowed at end"), "half an escape"},
        {"REGEXP_REPLACE(REPEAT('a', 1000000), 'a', 'bb')",
         ERROR("Output of REGEXP_REPLACE exceeds max allowed output size of 1MB"), "too long"},
        {"REGEXP_REPLACE('é', r'\\C', 'x')", "\"xx\"", "bytes of a character, all of them"},
        {"REGEXP_REPLACE('é', r'^\\C', 'x')", ERROR("The regular expression divides a character"),
         "a STRING stays one"},
        {"REGEXP_REPLACE('abc', p, '-') FROM UNNEST(['a', 'c']) AS p", "\"-bc\"\n\"ab-\"",
         "an expression for each row"},
    };
    CHECK_EXPRESSIONS(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_found),
        cmocka_unit_test(parts_are_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
