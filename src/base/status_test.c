/* Tests of statuses: words, details in gRPC's form, errno, and life without memory. */
#include "base/status.h"

#include "base/testing/failmalloc.h"
#include "base/testing/testing.h"

#include <errno.h>

static void words_are_kept(void **state)
{
    (void)state;
    status s = status_make(STATUS_NOT_FOUND, "no %s called \"%.*s\"", "table", 3, "abcdef");
    assert_string_equal(status_message(s), "no table called \"abc\"");
    assert_status(s, STATUS_NOT_FOUND);
    assert_ok(status_ok());
    assert_string_equal(status_message(status_ok()), "");
    assert_string_equal(status_message(status_out_of_memory()), "out of memory");
}

static void codes_have_googles_names(void **state)
{
    (void)state;
    assert_string_equal(status_code_name(STATUS_OK), "OK");
    assert_string_equal(status_code_name(STATUS_FAILED_PRECONDITION), "FAILED_PRECONDITION");
    assert_string_equal(status_code_name(STATUS_UNAUTHENTICATED), "UNAUTHENTICATED");
    assert_string_equal(status_code_name((enum status_code)17), "UNKNOWN");
    assert_string_equal(status_code_name((enum status_code) - 1), "UNKNOWN");
}

static void errno_becomes_a_code(void **state)
{
    (void)state;
    static const struct {
        int error;
        enum status_code code;
    } cases[] = {
        {ENOSPC, STATUS_RESOURCE_EXHAUSTED}, {EDQUOT, STATUS_RESOURCE_EXHAUSTED},
        {ENOMEM, STATUS_RESOURCE_EXHAUSTED}, {EMFILE, STATUS_RESOURCE_EXHAUSTED},
        {ENOENT, STATUS_NOT_FOUND},          {EEXIST, STATUS_ALREADY_EXISTS},
        {EACCES, STATUS_PERMISSION_DENIED},  {EPERM, STATUS_PERMISSION_DENIED},
        {EIO, STATUS_UNAVAILABLE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_status(status_from_errno(cases[i].error, "tried"), cases[i].code);
    status s = status_from_errno(ENOENT, "cannot open %s", "x");
    assert_string_equal(status_message(s), "cannot open x: No such file or directory");
    status_free(s);
}

/* google.rpc.Status, field 3, of google.protobuf.Any{type_url = 1, value = 2}. */
static void details_are_serialised(void **state)
{
    (void)state;
    status s = status_make(STATUS_UNAVAILABLE, "busy");
    assert_int_equal(status_details(s).size, 0);
    status_add_detail(&s, "a.B", bytes_make("\x08\x01", 2));
    static const char expected[] = "\x1a\x1d"
                                   "\x0a\x17type.googleapis.com/a.B"
                                   "\x12\x02\x08\x01";
    assert_true(bytes_equal(status_details(s), bytes_make(expected, sizeof expected - 1)));
    status_add_detail(&s, "a.B", bytes_make("\x08\x01", 2));
    assert_int_equal(status_details(s).size, 2 * (sizeof expected - 1));
    status copy = status_copy(s);
    assert_string_equal(status_message(copy), "busy");
    assert_true(bytes_equal(status_details(copy), status_details(s)));
    status_free(copy);
    status_free(s);
    status fine = status_ok();
    status_add_detail(&fine, "a.B", bytes_make(NULL, 0));
    assert_int_equal(status_details(fine).size, 0);
}

static status fails_if(bool fail)
{
    return fail ? status_make(STATUS_ABORTED, "inner") : status_ok();
}

static status tries(bool fail, bool *went_on)
{
    TRY(fails_if(fail));
    *went_on = true;
    return status_ok();
}

static void try_leaves_on_failure(void **state)
{
    (void)state;
    bool went_on = false;
    assert_status(tries(true, &went_on), STATUS_ABORTED);
    assert_false(went_on);
    assert_ok(tries(false, &went_on));
    assert_true(went_on);
}

static void use_status(void *context)
{
    (void)context;
    status s = status_make(STATUS_INTERNAL, "words %d", 1);
    status_add_detail(&s, "a.B", bytes_of("value"));
    status_add_detail(&s, "c.D", bytes_of("value"));
    bytes details = status_details(s); /* each detail is whole or absent */
    assert_true(details.size == 0 || details.size == 34 || details.size == 68);
    status copy = status_copy(s);
    assert_int_equal(s.code, STATUS_INTERNAL);
    assert_int_equal(copy.code, STATUS_INTERNAL);
    status_free(copy);
    status_free(s);
}

static void memory_runs_out_anywhere(void **state)
{
    (void)state;
    failmalloc_each(use_status, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_kept),        cmocka_unit_test(codes_have_googles_names),
        cmocka_unit_test(errno_becomes_a_code),  cmocka_unit_test(details_are_serialised),
        cmocka_unit_test(try_leaves_on_failure), cmocka_unit_test(memory_runs_out_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
