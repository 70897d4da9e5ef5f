/* Rows of files as a source, a file as a sink, and what was written read again: with the parts of a
 * transfer, and no server. */
#include "transfer/file_check.h"
#include "transfer/file_sink.h"
#include "transfer/file_source.h"

#include "base/testing/testing.h"

#include <stdio.h>
#include <unistd.h>

enum { ARENA_LIMIT = 1 << 20, ROWS = 10 };

static const struct row_format format = {
    .kind = ROWS_CSV, .form = ROWS_CELLS, .delimiter = ',', .layout = {.default_us = 7000}};

struct fixture {
    char directory[64];
    char first[96];
    char second[96];
    char part[96];
    const char *paths[2];
    uint64_t refused; /* how often */
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    snprintf(f->directory, sizeof f->directory, "/tmp/trestle-files-XXXXXX");
    assert_non_null(mkdtemp(f->directory));
    snprintf(f->first, sizeof f->first, "%s/first", f->directory);
    snprintf(f->second, sizeof f->second, "%s/second", f->directory);
    snprintf(f->part, sizeof f->part, "%s/first.part", f->directory);
    f->paths[0] = f->first;
    f->paths[1] = f->second;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    unlink(f->first);
    unlink(f->second);
    unlink(f->part);
    assert_int_equal(rmdir(f->directory), 0);
    free(f);
    return 0;
}

static void write_file(const char *path, const char *content)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(content, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* --- the source --- */

/* What it gives next, "file:line key"; "" at the end. */
static const char *next(const struct transfer_source *source, char text[200])
{
    struct arena *arena = arena_create(ARENA_LIMIT);
    struct transfer_record record = {0};
    struct transfer_place place;
    bool is_end;
    text[0] = '\0';
    assert_ok(source->next(source->context, arena, &record, &is_end));
    if (!is_end) {
        source->describe(source->context, record.tag, &place);
        snprintf(text, 200, "%s:%d %.*s", strrchr(place.file, '/') + 1, (int)place.line,
                 (int)record.change.row_key.size, (const char *)record.change.row_key.data);
        status_free(record.failure);
    }
    arena_destroy(arena);
    return text;
}

static void files_are_read_one_behind_the_other(void **state)
{
    static const char *const expected[] = {"first:2 a", "first:4 b", "second:2 c", "second:3 d"};
    const struct fixture *f = *state;
    char text[200];
    write_file(f->first,
               "row_key,family,qualifier,timestamp,value\na,f,q,0,1\na,f,r,0,1\nb,f,q,0,1");
    write_file(f->second, "row_key,family,qualifier,timestamp,value\nc,f,q,0,1\nd,f,q,0,1\n");
    for (int stop = 0; stop <= 4; stop++) {
        struct file_source *source, *again;
        assert_ok(file_source_create(f->paths, 2, &format, &source));
        assert_ok(file_source_create(f->paths, 2, &format, &again));
        const struct transfer_source one = file_source_interface(source);
        const struct transfer_source other = file_source_interface(again);
        for (int i = 0; i < stop; i++)
            assert_string_equal(next(&one, text), expected[i]);
        json_t *position = one.save(one.context);
        assert_ok(other.restore(other.context, position));
        for (int i = stop; i < 4; i++)
            assert_string_equal(next(&other, text), expected[i]);
        assert_string_equal(next(&other, text), "");
        assert_ok(other.rewind(other.context));
        assert_string_equal(next(&other, text), expected[0]);
        json_decref(position);
        file_source_destroy(source);
        file_source_destroy(again);
    }
}

static void a_position_of_another_source_is_refused(void **state)
{
    const struct fixture *f = *state;
    struct file_source *source;
    write_file(f->first, "row_key,family,qualifier,timestamp,value\n");
    assert_ok(file_source_create(f->paths, 1, &format, &source));
    const struct transfer_source interface = file_source_interface(source);
    json_t *positions[] = {json_object(),
                           json_pack("{s:i, s:i, s:i}", "file", 2, "line", 0, "timestamp_us", 0)};
    for (size_t i = 0; i < 2; i++) {
        assert_status(interface.restore(interface.context, positions[i]), STATUS_DATA_LOSS);
        json_decref(positions[i]);
    }
    file_source_destroy(source);
}

/* --- the sink, and what it wrote --- */

static void refused(void *context, uint64_t tag, bytes text, status why)
{
    struct fixture *f = context;
    (void)tag;
    (void)text;
    (void)why;
    f->refused++;
}

static struct file_sink *make_sink(struct fixture *f, const struct row_format *as)
{
    const struct file_sink_options options = {.path = f->first,
                                              .format = as,
                                              .has_timestamps = true,
                                              .refusal = {.context = f, .refused = refused}};
    struct file_sink *sink;
    assert_ok(file_sink_create(&options, &sink));
    return sink;
}

static void add_row(const struct transfer_sink *sink, int number)
{
    char key[8], value[8];
    snprintf(key, sizeof key, "k%02d", number);
    snprintf(value, sizeof value, "v%02d", number);
    struct move_cell cell = {"f", bytes_of("q"), 1000 * number, bytes_of(value)};
    const struct transfer_record record = {
        .tag = (uint64_t)number, .change = {.row_key = bytes_of(key), .cells = &cell, .count = 1}};
    assert_ok(sink->add(sink->context, &record));
}

static void check_file(const struct fixture *f, const struct row_format *as, struct file_check *out)
{
    struct file_source *source;
    assert_ok(file_source_create(f->paths, 1, as, &source));
    const struct transfer_source rows = file_source_interface(source);
    assert_ok(file_check_run(&rows, NULL, true, out));
    file_source_destroy(source);
}

/* Cut off after any row, gone on with by another sink: the file and its sum are as in one go. */
static void go_on(struct fixture *f, const struct row_format *as)
{
    for (int stop = 0; stop <= ROWS; stop++) {
        struct file_sink *sink = make_sink(f, as);
        struct transfer_sink interface = file_sink_interface(sink);
        struct file_check check;
        for (int i = 0; i < stop; i++)
            add_row(&interface, i);
        assert_ok(interface.flush(interface.context));
        json_t *position = interface.save(interface.context);
        add_row(&interface, 99);
        assert_ok(interface.flush(interface.context));
        file_sink_destroy(sink);

        sink = make_sink(f, as);
        interface = file_sink_interface(sink);
        assert_ok(interface.restore(interface.context, position));
        json_decref(position);
        for (int i = stop; i < ROWS; i++)
            add_row(&interface, i);
        assert_ok(interface.flush(interface.context));
        assert_ok(interface.finish(interface.context));
        check_file(f, as, &check);
        assert_int_equal(check.sum.rows, ROWS);
        assert_int_equal(check.mistakes, 0);
        assert_true(row_sum_equal(&check.sum, file_sink_sum(sink)));
        file_sink_destroy(sink);
    }
}

static void a_file_is_gone_on_with(void **state)
{
    for (int kind = ROWS_CSV; kind <= ROWS_AVRO; kind++) {
        struct row_format as = format;
        as.kind = (enum row_kind)kind;
        go_on(*state, &as);
    }
}

static void write_rows(struct fixture *f, struct row_sum *sum)
{
    struct file_sink *sink = make_sink(f, &format);
    const struct transfer_sink interface = file_sink_interface(sink);
    for (int i = 0; i < ROWS; i++)
        add_row(&interface, i);
    assert_ok(interface.flush(interface.context));
    assert_ok(interface.finish(interface.context));
    *sum = *file_sink_sum(sink);
    file_sink_destroy(sink);
}

/* Each byte of the file that is another makes another sum, or a mistake, or a file that is none. */
static void a_byte_that_changed_is_found(void **state)
{
    struct fixture *f = *state;
    struct row_sum sum;
    write_rows(f, &sum);
    FILE *file = fopen(f->first, "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long size = ftell(file);
    for (long at = (long)strlen("row_key,family,qualifier,timestamp,value,encoding\n");
         at < size - 1; at++) {
        struct file_check check;
        assert_int_equal(fseek(file, at, SEEK_SET), 0);
        int byte = fgetc(file);
        assert_int_equal(fseek(file, at, SEEK_SET), 0);
        assert_int_equal(fputc(byte ^ 1, file), byte ^ 1);
        assert_int_equal(fflush(file), 0);
        check_file(f, &format, &check);
        assert_true(check.mistakes > 0 || !row_sum_equal(&check.sum, &sum));
        assert_int_equal(fseek(file, at, SEEK_SET), 0);
        assert_int_equal(fputc(byte, file), byte);
    }
    assert_int_equal(fclose(file), 0);
}

static void what_the_form_cannot_hold_is_refused(void **state)
{
    struct fixture *f = *state;
    struct field_column column = {bytes_of("q"), "f", bytes_of("q")};
    struct field_typed type = {bytes_of("q"), FIELD_INT64};
    struct row_format fields = format;
    fields.form = ROWS_FIELDS;
    fields.layout = (struct field_layout){
        .columns = &column, .column_count = 1, .types = &type, .type_count = 1};
    struct file_sink *sink = make_sink(f, &fields);
    const struct transfer_sink interface = file_sink_interface(sink);
    add_row(&interface, 1);
    assert_int_equal(f->refused, 1);
    assert_int_equal(file_sink_sum(sink)->rows, 0);
    file_sink_destroy(sink);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(files_are_read_one_behind_the_other, setup, teardown),
        cmocka_unit_test_setup_teardown(a_position_of_another_source_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_file_is_gone_on_with, setup, teardown),
        cmocka_unit_test_setup_teardown(a_byte_that_changed_is_found, setup, teardown),
        cmocka_unit_test_setup_teardown(what_the_form_cannot_hold_is_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
