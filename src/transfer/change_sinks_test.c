/* Tests of where changes go: what is written, what a kill leaves, and what cannot be had. */
#include "base/testing/failmalloc.h"
#include "base/testing/testing.h"
#include "transfer/change_files.h"
#include "transfer/change_json.h"
#include "transfer/change_kafka.h"
#include "transfer/change_output.h"
#include "transfer/change_position.h"
#include "transfer/text_file.h"
#include "wire/proto.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH = 4096, FILES_MOST = 200 };

static const struct change_files_options plain = {.rotate_bytes = 1 << 30,
                                                  .rotate_us = INT64_C(1) << 60};

static int make_directory(void **state)
{
    char *path = strdup("/tmp/trestle_sinks.XXXXXX");
    assert_non_null(path);
    assert_non_null(mkdtemp(path));
    *state = path;
    return 0;
}

static void each_file(const char *directory, void (*visit)(const char *path, void *context),
                      void *context)
{
    DIR *open = opendir(directory);
    assert_non_null(open);
    for (struct dirent *entry; (entry = readdir(open)) != NULL;) {
        char path[PATH];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        visit(path, context);
    }
    closedir(open);
}

static void remove_one(const char *path, void *context)
{
    (void)context;
    assert_int_equal(unlink(path), 0);
}

static int remove_directory(void **state)
{
    each_file(*state, remove_one, NULL);
    assert_int_equal(rmdir(*state), 0);
    free(*state);
    return 0;
}

static struct change_sink open_files(const char *directory)
{
    struct change_files_options options = plain;
    struct change_sink sink;
    options.directory = directory;
    options.clock = clock_system();
    assert_ok(change_files_create(&options, &sink));
    return sink;
}

static status add(const struct change_sink *sink, bytes partition, const char *line)
{
    const struct feed_change change = {
        .row_key = bytes_of("row"), .commit_us = INT64_C(1764387792000001), .partition = partition};
    return sink->add(sink->object, &change, bytes_of(line));
}

/* --- files --- */

static void count_one(const char *path, void *context)
{
    size_t size = strlen(path), *counts = context;
    counts[0] += size > 6 && strcmp(path + size - 6, ".jsonl") == 0;
    counts[1] += size > 5 && strcmp(path + size - 5, ".part") == 0;
}

/* More than may be open: those that were used longest ago are finished. */
static void partitions_may_be_many(void **state)
{
    struct change_sink sink = open_files(*state);
    size_t counts[2] = {0};
    for (int i = 0; i < FILES_MOST; i++) {
        char key[64];
        snprintf(key, sizeof key, "%060d", i); /* alike, as far as names have them */
        assert_ok(add(&sink, bytes_of(key), "{}\n"));
    }
    assert_ok(sink.flush(sink.object));
    each_file(*state, count_one, counts);
    assert_int_equal(counts[0] + counts[1], FILES_MOST);
    assert_int_equal(counts[1], 64);
    change_sink_destroy(&sink);
    counts[0] = counts[1] = 0;
    each_file(*state, count_one, counts);
    assert_int_equal(counts[0], FILES_MOST);
}

static void a_name_that_is_taken_gets_a_number(void **state)
{
    char path[PATH];
    struct stat found;
    for (int i = 0; i < 3; i++) {
        struct change_sink sink = open_files(*state);
        assert_ok(add(&sink, bytes_of(""), "{}\n"));
        assert_ok(sink.flush(sink.object));
        change_sink_destroy(&sink);
    }
    for (int i = 0; i < 3; i++) {
        static const char *const numbers[] = {"", "-1", "-2"};
        snprintf(path, sizeof path, "%s/first-20251129T034312.000001Z%s.jsonl", (char *)*state,
                 numbers[i]);
        assert_int_equal(stat(path, &found), 0);
        assert_int_equal(found.st_size, 3);
    }
}

static void read_one(const char *path, void *context)
{
    struct buffer text = {0};
    size_t size = strlen(path);
    if (strcmp(path + size - 6, ".jsonl") != 0)
        return;
    assert_ok(change_position_read(path, &text));
    buffer_append_bytes(context, buffer_bytes(&text));
    buffer_free(&text);
}

/* The file may not grow beyond some bytes, as on a disk without room: a line is cut off. */
static void what_cannot_be_written_is_told_and_cut(void **state)
{
    struct rlimit before, small;
    struct buffer text = {0};
    struct change_sink sink = open_files(*state);
    assert_ok(add(&sink, bytes_of("p"), "{\"whole\":1}\n"));
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){.rlim_cur = 20, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    status s = add(&sink, bytes_of("p"), "{\"cut off\":12345678}\n");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_non_null(strstr(status_message(s), "cannot write"));
    status_free(s);
    change_sink_destroy(&sink);
    each_file(*state, read_one, &text);
    assert_int_equal(text.size, 0); /* it is not finished */
    sink = open_files(*state);
    change_sink_destroy(&sink);
    each_file(*state, read_one, &text);
    assert_true(bytes_equal(buffer_bytes(&text), bytes_of("{\"whole\":1}\n")));
    buffer_free(&text);
}

static void what_is_no_directory_is_refused(void **state)
{
    char path[PATH];
    struct change_files_options options = plain;
    struct change_sink sink = open_files(*state);
    change_sink_destroy(&sink);
    snprintf(path, sizeof path, "%s/.lock", (char *)*state);
    options.directory = path; /* a file */
    options.clock = clock_system();
    assert_status(change_files_create(&options, &sink), STATUS_UNAVAILABLE);
    options.directory = "";
    assert_status(change_files_create(&options, &sink), STATUS_INVALID_ARGUMENT);
}

/* --- the output --- */

static bool never(void)
{
    return false;
}

static bool at_once(void)
{
    return true;
}

static void a_reader_that_does_not_read_may_be_given_up(void **state)
{
    int ends[2];
    struct change_sink sink;
    status s = status_ok();
    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_ok(change_output_create(ends[1], at_once, &sink));
    for (int i = 0; i < 1 << 20 && status_is_ok(s); i++)
        s = add(&sink, bytes_of(""), "{}\n");
    assert_status(s, STATUS_CANCELLED);
    change_sink_destroy(&sink);
    close(ends[0]);
    close(ends[1]);
}

static void a_reader_that_is_gone_is_known(void **state)
{
    int ends[2];
    struct change_sink sink;
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(pipe(ends), 0);
    assert_ok(change_output_create(ends[1], never, &sink));
    assert_ok(add(&sink, bytes_of(""), "{}\n"));
    close(ends[0]);
    assert_status(sink.flush(sink.object), STATUS_CANCELLED);
    change_sink_destroy(&sink);
    close(ends[1]);
}

static void a_full_disk_is_told(void **state)
{
    struct change_sink sink;
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    (void)state;
    assert_true(full >= 0);
    assert_ok(change_output_create(full, never, &sink));
    assert_ok(add(&sink, bytes_of(""), "{}\n"));
    assert_status(sink.flush(sink.object), STATUS_RESOURCE_EXHAUSTED);
    change_sink_destroy(&sink);
    close(full);
}

/* --- the place --- */

static void a_place_is_replaced_as_a_whole(void **state)
{
    char path[PATH], fresh[PATH];
    struct buffer text = {0};
    snprintf(path, sizeof path, "%s/place", (char *)*state);
    snprintf(fresh, sizeof fresh, "%s.new", path);
    assert_ok(change_position_read(path, &text));
    assert_int_equal(text.size, 0);
    assert_ok(text_file_replace(path, "one, which is longer"));
    assert_ok(text_file_replace(path, "two"));
    assert_int_equal(mkdir(fresh, 0700), 0); /* in the way of a third */
    status s = text_file_replace(path, "three");
    assert_false(status_is_ok(s));
    status_free(s);
    assert_int_equal(rmdir(fresh), 0);
    assert_ok(change_position_read(path, &text));
    assert_true(bytes_equal(buffer_bytes(&text), bytes_of("two")));
    buffer_free(&text);
}

/* --- Kafka --- */

static void assert_kafka_refuses(const char *library, const char *url, const char *config,
                                 enum status_code code, const char *words)
{
    const struct change_kafka_options options = {.library = library, .url = url, .config = config};
    struct change_sink sink;
    status s = change_kafka_create(&options, &sink);
    assert_int_equal(s.code, code);
    if (strstr(status_message(s), words) == NULL)
        print_error("%s\n", status_message(s));
    assert_non_null(strstr(status_message(s), words));
    status_free(s);
}

static void a_library_that_is_missing_is_named(void **state)
{
    (void)state;
    assert_kafka_refuses("libtrestle-none.so.1", "kafka://h:1/t", NULL, STATUS_FAILED_PRECONDITION,
                         "Debian's package librdkafka1");
    assert_kafka_refuses("libz.so.1", "kafka://h:1/t", NULL, STATUS_FAILED_PRECONDITION,
                         "libz.so.1 is no librdkafka");
}

static void other_urls_are_refused(void **state)
{
    static const char *const urls[] = {"kafka:",       "kafka://",       "kafka://h:1",
                                       "kafka://h:1/", "kafka:///topic", "kafka://h:1/a/b"};
    (void)state;
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++)
        assert_kafka_refuses(CHANGE_KAFKA_LIBRARY, urls[i], NULL, STATUS_INVALID_ARGUMENT,
                             "is no kafka://HOST:PORT/TOPIC");
}

/* --- lines --- */

static void write_line(void *context)
{
    Bt__Mutation__SetCell cell = BT__MUTATION__SET_CELL__INIT;
    Bt__Mutation mutation = BT__MUTATION__INIT, *mutations[] = {&mutation};
    struct buffer line = {0};
    const struct feed_change change = {
        .row_key = bytes_of("\xff"), .source_cluster = "c", .mutations = mutations, .count = 1};
    (void)context;
    cell.value = proto_data(bytes_of("\xfe"));
    mutation.mutation_case = BT__MUTATION__MUTATION_SET_CELL;
    mutation.set_cell = &cell;
    change_json_write(&change, NULL, &line);
    assert_true(line.failed || line.data[line.size - 1] == '\n');
    buffer_free(&line);
}

static void memory_may_run_out(void **state)
{
    (void)state;
    failmalloc_each(write_line, NULL);
}

#define IN_A_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_DIRECTORY(partitions_may_be_many),
        IN_A_DIRECTORY(a_name_that_is_taken_gets_a_number),
        IN_A_DIRECTORY(what_cannot_be_written_is_told_and_cut),
        IN_A_DIRECTORY(what_is_no_directory_is_refused),
        cmocka_unit_test(a_reader_that_is_gone_is_known),
        cmocka_unit_test(a_reader_that_does_not_read_may_be_given_up),
        cmocka_unit_test(a_full_disk_is_told),
        IN_A_DIRECTORY(a_place_is_replaced_as_a_whole),
        cmocka_unit_test(a_library_that_is_missing_is_named),
        cmocka_unit_test(other_urls_are_refused),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
