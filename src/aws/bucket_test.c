/* A place in a bucket that answers as it is told: what is made again, what is told in words, pages
 * of lists, parts and their end, locks. */
#include "aws/bucket.h"
#include "aws/testing/testing.h"

#include "base/testing/testing.h"

#include <stdatomic.h>
#include <stdio.h>

struct step {
    const char *begins; /* what the request begins with */
    const char *has;    /* what else is in it; NULL: whatever */
    int http_status;
    const char *body;
    const char *headers; /* NULL: as S3 has them */
};

struct fixture {
    struct fake_server server;
    struct place *place;
    const struct step *steps;
    atomic_uint taken;
    atomic_uint wrong;
};

static void answer_step(void *context, unsigned number, const char *request, struct buffer *out)
{
    struct fixture *f = context;
    const struct step *step = &f->steps[number];
    atomic_fetch_add(&f->taken, 1);
    if (strncmp(request, step->begins, strlen(step->begins)) != 0 ||
        (step->has != NULL && strstr(request, step->has) == NULL)) {
        fprintf(stderr, "# step %u: %.200s\n", number, request);
        atomic_fetch_add(&f->wrong, 1);
    }
    bool is_put = strncmp(request, "PUT", 3) == 0 && step->http_status == 200;
    const char *headers = is_put ? "ETag: \"e\"" : "Date: Sun, 30 Aug 2015 12:36:00 GMT";
    buffer_append_format(out,
                         "HTTP/1.1 %d X\r\n%s\r\nContent-Length: %zu\r\n"
                         "Connection: close\r\n\r\n%s",
                         step->http_status, step->headers != NULL ? step->headers : headers,
                         strlen(step->body), step->body);
}

/* An answer: its root element around the content. */
#define LISTING(content) "<ListBucketResult>" content "</ListBucketResult>"
#define LAST             "<IsTruncated>false</IsTruncated>"

static void begin(struct fixture *f, const struct step *steps)
{
    *f = (struct fixture){.server = {.answer = answer_step, .context = f}, .steps = steps};
    fake_server_start(&f->server);
    assert_int_equal(setenv("AWS_ENDPOINT_URL_S3", f->server.url, 1), 0);
    assert_int_equal(setenv("AWS_ACCESS_KEY_ID", "AK", 1), 0);
    assert_int_equal(setenv("AWS_SECRET_ACCESS_KEY", "secret", 1), 0);
    assert_int_equal(setenv("AWS_REGION", "r", 1), 0);
    assert_ok(place_of_name(files_of_system(), "s3://b/p/", &f->place));
}

static void end(struct fixture *f, unsigned steps)
{
    place_close(f->place);
    fake_server_stop(&f->server);
    assert_int_equal(f->wrong, 0);
    assert_int_equal(f->taken, steps);
}

static void assert_words(status s, enum status_code code, const char *words)
{
    assert_int_equal(s.code, code);
    assert_non_null(strstr(status_message(s), words));
    status_free(s);
}

/* --- calls --- */

static void a_busy_bucket_is_asked_again(void **state)
{
    struct fixture f;
    const struct step steps[] = {
        {"PUT /b/p/a%3Ab ", "Credential=AK/", 503, "<Error><Code>SlowDown</Code></Error>", NULL},
        {"PUT /b/p/a%3Ab ", NULL, 500, "", NULL},
        {"PUT /b/p/a%3Ab ", "content", 200, "", NULL},
    };
    (void)state;
    begin(&f, steps);
    assert_ok(place_put(f.place, "a:b", bytes_of("content")));
    end(&f, 3);
}

static void errors_are_told_in_words(void **state)
{
    struct fixture f;
    const struct step steps[] = {
        {"PUT", NULL, 403,
         "<Error><Code>SignatureDoesNotMatch</Code><Message>It is not.</Message></Error>", NULL},
        {"PUT", NULL, 403, "<Error><Code>AccessDenied</Code></Error>", NULL},
        {"PUT", NULL, 404, "<Error><Code>NoSuchBucket</Code></Error>", NULL},
        {"GET", "range: bytes=0-", 404, "<Error><Code>NoSuchKey</Code></Error>", NULL},
        {"GET", NULL, 404, "<html>no such page</html>", NULL}, /* a proxy's: tells nothing */
        {"GET", NULL, 404, "<Error><Code>NoSuchKey</Code></Error>", NULL},
    };
    struct place_reader *reader;
    (void)state;
    begin(&f, steps);
    assert_words(place_put(f.place, "a", bytes_of("")), STATUS_UNAUTHENTICATED, "It is not.");
    assert_words(place_put(f.place, "a", bytes_of("")), STATUS_PERMISSION_DENIED, "bucket b");
    assert_words(place_put(f.place, "a", bytes_of("")), STATUS_FAILED_PRECONDITION, "NoSuchBucket");
    assert_status(place_open(f.place, "a", &reader), STATUS_NOT_FOUND);
    assert_status(place_open(f.place, "a", &reader), STATUS_NOT_FOUND);
    end(&f, 6);
}

static void addresses_are_checked(void **state)
{
    const char *const bad[] = {"s3://", "s3:///", "s3:///p", "s3://b//p", "s3://b/.p", "s3://b c"};
    struct place *place;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_status(place_of_name(files_of_system(), bad[i], &place), STATUS_INVALID_ARGUMENT);
    assert_status(place_of_name(files_of_system(), "gs://b", &place), STATUS_UNIMPLEMENTED);
    assert_null(place);
}

/* --- lists --- */

static status write_entry(void *context, const struct place_entry *entry)
{
    buffer_append_format(context, "%s%s %llu\n", entry->name, entry->is_folder ? "/" : "",
                         (unsigned long long)entry->size);
    return status_ok();
}

static void a_list_comes_in_pages(void **state)
{
    struct fixture f;
    struct buffer out = {0};
    const struct step steps[] = {
        {"GET /b/?delimiter=%2F&list-type=2&prefix=p%2Ffiles%2F ", NULL, 200,
         "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
         "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>b</Name>"
         "<IsTruncated>true</IsTruncated>"
         "<NextContinuationToken>1/2+=</NextContinuationToken>"
         "<Contents><Key>p/files/b</Key><LastModified>2015-08-30T12:36:00.000Z</LastModified>"
         "<Size>7</Size></Contents></ListBucketResult>",
         NULL},
        {"GET /b/?continuation-token=1%2F2%2B%3D&delimiter=%2F&list-type=2&prefix=p%2Ffiles%2F ",
         NULL, 200,
         LISTING("<Prefix>p/files/</Prefix>" LAST "<Contents><Key>p/files/.x</Key>"
                 "<LastModified>2015-08-30T12:36:00.000Z</LastModified><Size>1</Size></Contents>"
                 "<CommonPrefixes><Prefix>p/files/a/</Prefix></CommonPrefixes>"),
         NULL},
    };
    (void)state;
    begin(&f, steps);
    assert_ok(place_list(f.place, "files", write_entry, &out));
    buffer_append_byte(&out, 0);
    assert_string_equal((const char *)out.data, "a/ 0\nb 7\n");
    buffer_free(&out);
    end(&f, 2);
}

/* A proxy's page, an empty answer and a listing that was cut were once taken for listings of what
 * there is, and an expiry removed the rest. */
static void an_answer_that_is_no_listing_is_refused(void **state)
{
#define OBJECT(fields) LISTING(LAST "<Contents>" fields "</Contents>")
#define TIME           "<LastModified>2015-08-30T12:36:00.000Z</LastModified>"
    static const struct {
        const char *body;
        const char *words;
        bool is_asked_again; /* until patience ends */
    } wrong[] = {
        {"", "no ListBucketResult", true},
        {"<html><body>captive portal</body></html>", "captive portal", true},
        {"<ListBucketResult>" LAST "<Contents><Key>p/files/a</Key>" TIME
         "<Size>1</Size></Contents>",
         "not all of one", true},
        {"<ListBucketResult>" LAST "<Contents><Key>p/files/a</Key>" TIME "<Si", "not all of one",
         true},
        {"<ListBucketResult>" LAST "<Contents></ListBucketResult>", "not all of one", true},
        {LISTING(LAST) "<html>", "not all of one", true},
        {LISTING("<Name>b</Name>"), "whether it goes on", false},
        {LISTING("<IsTruncated>maybe</IsTruncated>"), "whether it goes on", false},
        {LISTING("<IsTruncated>true</IsTruncated>"), "does not say where", false},
        {LISTING("<Prefix>p/other/</Prefix>" LAST), "elsewhere", false},
        {OBJECT("<Key>p/other/a</Key>" TIME "<Size>1</Size>"), "elsewhere", false},
        {OBJECT("<Key>p/files/&a;</Key>" TIME "<Size>1</Size>"), "cannot be read", false},
        {OBJECT("<Key>p/files/a</Key>" TIME "<Size></Size>"), "of an object", false},
        {OBJECT("<Key>p/files/a</Key><Size>1</Size>"), "of an object", false},
        {OBJECT(TIME "<Size>1</Size>"), "of an object", false},
        {LISTING(LAST "<CommonPrefixes></CommonPrefixes>"), "a folder", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        enum { ATTEMPTS = 6 };
        struct step steps[ATTEMPTS];
        struct fixture f;
        struct buffer out = {0};
        for (size_t j = 0; j < ATTEMPTS; j++)
            steps[j] = (struct step){"GET", NULL, 200, wrong[i].body, NULL};
        begin(&f, steps);
        assert_words(place_list(f.place, "files", write_entry, &out), STATUS_UNAVAILABLE,
                     wrong[i].words);
        assert_int_equal(out.size, 0);
        buffer_free(&out);
        end(&f, wrong[i].is_asked_again ? ATTEMPTS : 1);
    }
}

static void a_listing_that_was_cut_once_is_asked_for_again(void **state)
{
    struct fixture f;
    struct buffer out = {0};
    const struct step steps[] = {
        {"GET", NULL, 200, "<ListBucketResult>" LAST, NULL},
        {"GET", NULL, 200, OBJECT("<Key>p/files/a&#x2d;&#98;</Key>" TIME "<Size>1</Size>"), NULL},
    };
    (void)state;
    begin(&f, steps);
    assert_ok(place_list(f.place, "files", write_entry, &out));
    buffer_append_byte(&out, 0);
    assert_string_equal((const char *)out.data, "a-b 1\n");
    buffer_free(&out);
    end(&f, 2);
}

static void pages_that_do_not_end_are_no_listing(void **state)
{
    struct fixture f;
    struct buffer out = {0};
    const char *page = LISTING("<IsTruncated>true</IsTruncated>"
                               "<NextContinuationToken>t</NextContinuationToken>");
    const struct step steps[] = {{"GET", NULL, 200, page, NULL}, {"GET", NULL, 200, page, NULL}};
    (void)state;
    begin(&f, steps);
    assert_words(place_list(f.place, "files", write_entry, &out), STATUS_UNAVAILABLE,
                 "does not say where");
    end(&f, 2);
}

/* --- what is put --- */

static void a_put_that_a_proxy_answers_is_made_again(void **state)
{
    struct fixture f;
    const struct step page = {"PUT", NULL, 200, "<html>maintenance</html>", "Server: proxy"};
    const struct step steps[] = {page, page, {"PUT", NULL, 200, "", NULL}};
    (void)state;
    begin(&f, steps);
    assert_ok(place_put(f.place, "a", bytes_of("content")));
    end(&f, 3);
}

/* --- parts --- */

enum { LARGE = (16 << 20) + 1 };

static status put_large(struct fixture *f)
{
    char *content = calloc(1, LARGE);
    assert_non_null(content);
    status s = place_put(f->place, "a", bytes_make(content, LARGE));
    free(content);
    return s;
}

#define BEGUN                                                                                      \
    {                                                                                              \
        "POST /b/p/a?uploads= ", NULL, 200,                                                        \
            "<InitiateMultipartUploadResult><UploadId>u/1</UploadId>"                              \
            "</InitiateMultipartUploadResult>",                                                    \
            NULL                                                                                   \
    }
#define PUT_PART(n)                                                                                \
    {                                                                                              \
        "PUT /b/p/a?partNumber=" #n "&uploadId=u%2F1 ", NULL, 200, "", "ETag: \"e" #n "\""         \
    }

static void a_large_object_comes_in_parts(void **state)
{
    struct fixture f;
    const struct step steps[] = {
        BEGUN,
        PUT_PART(1),
        PUT_PART(2),
        {"POST /b/p/a?uploadId=u%2F1 ",
         "<Part><PartNumber>2</PartNumber><ETag>\"e2\"</ETag></Part></CompleteMultipartUpload>",
         200, "<CompleteMultipartUploadResult></CompleteMultipartUploadResult>", NULL},
    };
    (void)state;
    begin(&f, steps);
    assert_ok(put_large(&f));
    end(&f, 4);
}

static void parts_that_fail_are_taken_back(void **state)
{
    struct fixture f;
    const struct step steps[] = {
        BEGUN,
        PUT_PART(1),
        {"PUT", NULL, 403, "<Error><Code>AccessDenied</Code></Error>", NULL},
        {"DELETE /b/p/a?uploadId=u%2F1 ", NULL, 204, "", NULL},
        BEGUN,
        PUT_PART(1),
        PUT_PART(2),
        {"POST", NULL, 200, "<Error><Code>AccessDenied</Code></Error>", NULL}, /* as S3 does it */
        {"DELETE", NULL, 204, "", NULL},
    };
    (void)state;
    begin(&f, steps);
    assert_status(put_large(&f), STATUS_PERMISSION_DENIED);
    assert_status(put_large(&f), STATUS_PERMISSION_DENIED);
    end(&f, 9);
}

/* --- locks --- */

#define LOCKED(time)                                                                               \
    LISTING(LAST "<Contents><Key>p/locks/other</Key><LastModified>" time "</LastModified>"         \
                 "<Size>0</Size></Contents>")

/* The server's date is 12:36. */
static void a_lock_that_is_left_is_removed_and_no_other(void **state)
{
    struct fixture f;
    struct place_lock *lock;
    const struct step steps[] = {
        {"PUT /b/p/locks/", NULL, 200, "", NULL},
        {"GET", "prefix=p%2Flocks%2F ", 200, LOCKED("2015-08-30T12:30:00.000Z"), NULL},
        {"DELETE /b/p/locks/", NULL, 204, "", NULL},
        {"PUT /b/p/locks/", NULL, 200, "", NULL},
        {"GET", NULL, 200, LOCKED("2015-08-30T12:20:00.000Z"), NULL},
        {"DELETE /b/p/locks/other ", NULL, 204, "", NULL},
        {"DELETE /b/p/locks/", NULL, 204, "", NULL},
    };
    (void)state;
    begin(&f, steps);
    assert_words(place_lock(f.place, &lock), STATUS_FAILED_PRECONDITION, "locks/other");
    assert_ok(place_lock(f.place, &lock));
    place_unlock(f.place, lock);
    end(&f, 7);
}

static void a_sweep_ends_what_was_begun(void **state)
{
    struct fixture f;
    const struct step steps[] = {
        {"GET /b/?prefix=p%2Ffiles%2F&uploads= ", NULL, 200,
         "<ListMultipartUploadsResult><Upload><Key>p/files/x</Key><UploadId>7</UploadId></Upload>"
         "</ListMultipartUploadsResult>",
         NULL},
        {"DELETE /b/p/files/x?uploadId=7 ", NULL, 404, "<Error><Code>NoSuchUpload</Code></Error>",
         NULL},
    };
    (void)state;
    begin(&f, steps);
    assert_ok(place_sweep(f.place, "files"));
    end(&f, 2);
}

static void uploads_of_elsewhere_are_not_ended(void **state)
{
    struct fixture f;
    const struct step steps[] = {
        {"GET", NULL, 200,
         "<ListMultipartUploadsResult><Upload><Key>q/x</Key><UploadId>7</UploadId></Upload>"
         "</ListMultipartUploadsResult>",
         NULL},
    };
    (void)state;
    begin(&f, steps);
    assert_words(place_sweep(f.place, "files"), STATUS_UNAVAILABLE, "elsewhere");
    end(&f, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_busy_bucket_is_asked_again),
        cmocka_unit_test(errors_are_told_in_words),
        cmocka_unit_test(addresses_are_checked),
        cmocka_unit_test(a_list_comes_in_pages),
        cmocka_unit_test(an_answer_that_is_no_listing_is_refused),
        cmocka_unit_test(a_listing_that_was_cut_once_is_asked_for_again),
        cmocka_unit_test(pages_that_do_not_end_are_no_listing),
        cmocka_unit_test(a_put_that_a_proxy_answers_is_made_again),
        cmocka_unit_test(a_large_object_comes_in_parts),
        cmocka_unit_test(parts_that_fail_are_taken_back),
        cmocka_unit_test(a_lock_that_is_left_is_removed_and_no_other),
        cmocka_unit_test(a_sweep_ends_what_was_begun),
        cmocka_unit_test(uploads_of_elsewhere_are_not_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
