/* Files of rows: what the encoder writes is read as the same rows; what is wrong is named, with its
 * line, and alone. */
#include "formats/row_encoder.h"

#include "base/testing/testing.h"

#include <stdio.h>
#include <unistd.h>

enum { ARENA_LIMIT = 1 << 20 };

struct fixture {
    struct arena *arena;
    char path[64];
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    snprintf(f->path, sizeof f->path, "/tmp/trestle-rows-XXXXXX");
    int fd = mkstemp(f->path);
    assert_true(fd >= 0);
    close(fd);
    f->arena = arena_create(ARENA_LIMIT);
    assert_non_null(f->arena);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(unlink(f->path), 0);
    arena_destroy(f->arena);
    free(f);
    return 0;
}

static void write_file(const struct fixture *f, bytes content)
{
    FILE *file = fopen(f->path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(content.data, 1, content.size, file), content.size);
    assert_int_equal(fclose(file), 0);
}

static void append_row(const struct move_change *row, struct buffer *out)
{
    buffer_append_bytes(out, row->row_key);
    for (size_t i = 0; i < row->count; i++) {
        const struct move_cell *cell = &row->cells[i];
        buffer_append_format(out, " %s:%.*s@%lld=%.*s", cell->family, (int)cell->qualifier.size,
                             (const char *)cell->qualifier.data, (long long)cell->timestamp_us,
                             (int)cell->value.size, (const char *)cell->value.data);
    }
}

/* "number: row;", of mistakes "number! reason;". */
static status show(const struct fixture *f, const struct row_format *format, struct buffer *out)
{
    struct row_file *file;
    bool is_end = false;
    TRY(row_file_open(f->path, format, &file));
    status s = status_ok();
    while (status_is_ok(s)) {
        struct row_record record;
        arena_reset(f->arena);
        s = row_file_next(file, f->arena, &record, &is_end);
        if (!status_is_ok(s) || is_end)
            break;
        bool is_sound = status_is_ok(record.failure);
        buffer_append_format(out, "%d%s ", (int)record.number, is_sound ? ":" : "!");
        if (is_sound)
            append_row(&record.row, out);
        else
            buffer_append_bytes(out, bytes_of(status_message(record.failure)));
        buffer_append_byte(out, ';');
        status_free(record.failure);
    }
    row_file_close(file);
    return s;
}

static void check(const struct fixture *f, const struct row_format *format, const char *content,
                  const char *expected)
{
    struct buffer out = {0};
    write_file(f, bytes_of(content));
    assert_ok(show(f, format, &out));
    buffer_append_byte(&out, '\0');
    assert_string_equal((const char *)out.data, expected);
    buffer_free(&out);
}

static void check_refused(const struct fixture *f, const struct row_format *format,
                          const char *content, const char *ending)
{
    struct buffer out = {0};
    write_file(f, bytes_of(content));
    status s = show(f, format, &out);
    const char *message = status_message(s);
    assert_true(strlen(message) > strlen(ending));
    assert_string_equal(message + strlen(message) - strlen(ending), ending);
    assert_status(s, STATUS_INVALID_ARGUMENT);
    buffer_free(&out);
}

static const struct row_format csv = {
    .kind = ROWS_CSV, .delimiter = ',', .layout = {.default_us = 7000}};

static void cells_of_a_row_stand_together(void **state)
{
    check(*state, &csv,
          "row_key,family,qualifier,timestamp,value\na,f,q,1000,v\na,f,r,,\"x\ny\"\nb,g,,2000,\n"
          "a,f,q,3000,w\n",
          "2: a f:q@1000=v f:r@7000=x\ny;5: b g:@2000=;6: a f:q@3000=w;");
    check(*state, &csv,
          "row_key,family,qualifier,timestamp,value,encoding\nYQ==,f,cQ==,0,dg==,base64\n"
          "a,f,r,0,w,\n",
          "2: a f:q@0=v f:r@0=w;");
}

/* A row of which a line is wrong is rejected as a whole, and its neighbours are not. */
static void a_wrong_line_is_that_of_its_row(void **state)
{
    check(*state, &csv,
          "row_key,family,qualifier,timestamp,value\na,f,q,0,v\nb,f,q,0,v\nb,f\nb,f,r,0,v\n"
          "c,f,q,soon,v\nd,f,q,0,\"v\"x\ne,f,q,0,v\n",
          "2: a f:q@0=v;3! line 4: there are 2 fields, and 5 in the header;"
          "6! line 6: the timestamp is no number of microseconds;"
          "7! line 7: something stands behind the closing quote of a field;8: e f:q@0=v;");
    check(*state, &csv,
          "row_key,family,qualifier,timestamp,value,encoding\na,f,q,0,v,hex\n?,f,q,0,v,base64\n"
          ",f,q,0,v,\nd,f,q,1,v,\n",
          "2! line 2: the encoding is not base64;3! line 3: is not base64;4! the row key is empty;"
          "5! the timestamp 1 of q is not of whole milliseconds since 1970;");
}

static void cbt_files_are_read(void **state)
{
    struct row_format format = csv;
    check(*state, &format, ",f,,g\n,a,b,c\nr1,1,,3\nr2,,2@1000,\n",
          "3: r1 f:a@7000=1 g:c@7000=3;4: r2 f:b@7000=2@1000;");
    format.has_value_timestamps = true;
    check(*state, &format, ",f,,g\n,a,b,c\nr,1@2000,x@y,z@0x3e8\ns,@,a@ 1000,\n",
          "3: r f:a@2000=1 f:b@7000=x@y g:c@1000=z;4: s f:a@7000=@ f:b@7000=a@ 1000;");
    check(*state, &format, ",f\n,a\nr,\n,1\ns,1,2\nt,1@1\n",
          "3! there is no value beside the row key;4! the row key is empty;"
          "5! there are 3 fields, and 2 in the header;"
          "6! the timestamp 1 of a is not of whole milliseconds since 1970;");
    format.layout.family = "h";
    check(*state, &format, ",a,b\nr,1,2\n", "2: r h:a@7000=1 h:b@7000=2;");
}

static void headers_that_make_no_sense_are_refused(void **state)
{
    struct row_format format = csv;
    check_refused(*state, &format, "", ":1: the file is empty: it has no header");
    check_refused(*state, &format, "id,name\n1,x\n",
                  ":1: it has a header of names: --row-key says how row keys are made of them");
    check_refused(*state, &format, ",f\n,a,b\n",
                  ":1: the line of qualifiers has not as many fields as that of families");
    check_refused(*state, &format, ",\n,a\n",
                  ":1: a line of the header needs an empty field, and a name in the next");
    format.form = ROWS_CELLS;
    check_refused(*state, &format, "a,b\n",
                  ":1: the header is not row_key,family,qualifier,timestamp,value");
}

static void fields_are_read_from_csv_and_json(void **state)
{
    const struct fixture *f = *state;
    const struct field_words words = {"{id}", NULL, NULL, "f", NULL};
    struct arena *arena = arena_create(ARENA_LIMIT);
    struct row_format format = csv;
    assert_ok(field_layout_parse(&words, arena, &format.layout));
    check(f, &format, "id,n,t\n1,x,\n2,,y\n,x,y\n3,,\n4,5\n",
          "2: 1 f:n@0=x;3: 2 f:t@0=y;4! the field id, of the row key, is not there;"
          "5! there is no value beside the row key;6! there are 2 fields, and 3 in the header;");
    check_refused(f, &format, "name\nx\n", ":1: the header has no field id");
    format.kind = ROWS_JSONL;
    check(f, &format, "\xef\xbb\xbf{\"id\":1,\"n\":\"\"}\n\n{\"id\":2,\"n\":null}\n{\"id\":3\n",
          "1: 1 f:n@0=;3! there is no value beside the row key;4! byte 8: ',' or '}' is expected;");
    arena_destroy(arena);
}

/* --- what is written --- */

static struct move_cell cells[] = {
    {"f", {(const uint8_t *)"q", 1}, 2000, {(const uint8_t *)"newer", 5}},
    {"f", {(const uint8_t *)"q", 1}, 1000, {(const uint8_t *)"a,\"b\"\n", 6}},
    {"f", {(const uint8_t *)"\xff\0", 2}, 0, {(const uint8_t *)"", 0}},
    {"g", {(const uint8_t *)"", 0}, 1000, {(const uint8_t *)"\0\xfe", 2}},
};

static const struct move_change rows[] = {
    {.row_key = {(const uint8_t *)"plain", 5}, .cells = cells, .count = 2},
    {.row_key = {(const uint8_t *)"\xf0\0key", 5}, .cells = cells, .count = 4},
    {.row_key = {(const uint8_t *)"r\n", 2}, .cells = cells + 3, .count = 1},
};

static struct move_cell empty_cell = {"f", {(const uint8_t *)"e", 1}, 0, {NULL, 0}};
static const struct move_change empty = {
    .row_key = {(const uint8_t *)"k", 1}, .cells = &empty_cell, .count = 1};
static const struct move_change raw = {
    .row_key = {(const uint8_t *)"k", 1}, .cells = cells + 3, .count = 1};

static void encode(const struct row_format *format, struct buffer *out)
{
    struct row_encoder *encoder;
    static const uint8_t mark[AVRO_MARK] = "0123456789abcde";
    assert_ok(row_encoder_create(format, mark, &encoder));
    assert_ok(row_encoder_begin(encoder, out));
    for (size_t i = 0; i < 3; i++) {
        assert_ok(row_encoder_add(encoder, &rows[i], out));
        assert_ok(row_encoder_flush(encoder, out));
    }
    row_encoder_destroy(encoder);
}

static void what_is_written_comes_back(void **state)
{
    const struct fixture *f = *state;
    struct buffer expected = {0};
    for (size_t i = 0; i < 3; i++)
        append_row(&rows[i], &expected);
    for (int kind = ROWS_CSV; kind <= ROWS_AVRO; kind++) {
        struct row_format format = {
            .kind = (enum row_kind)kind, .form = ROWS_CELLS, .delimiter = ';'};
        struct buffer file = {0}, found = {0};
        struct row_file *again;
        encode(&format, &file);
        write_file(f, buffer_bytes(&file));
        format.form = ROWS_AUTO;
        assert_ok(row_file_open(f->path, &format, &again));
        for (;;) {
            struct row_record record;
            bool is_end;
            assert_ok(row_file_next(again, f->arena, &record, &is_end));
            if (is_end)
                break;
            assert_ok(record.failure);
            append_row(&record.row, &found);
        }
        assert_int_equal(found.size, expected.size);
        assert_memory_equal(found.data, expected.data, found.size);
        row_file_close(again);
        buffer_free(&file);
        buffer_free(&found);
    }
    buffer_free(&expected);
}

static void check_text(enum row_kind kind, enum row_form form, const struct field_words *words,
                       const char *expected)
{
    struct arena *arena = arena_create(ARENA_LIMIT);
    struct row_format format = {.kind = kind, .form = form, .delimiter = ','};
    struct row_encoder *encoder;
    struct buffer out = {0};
    format.has_value_timestamps = true;
    assert_ok(field_layout_parse(words, arena, &format.layout));
    assert_ok(row_encoder_create(&format, (const uint8_t[AVRO_MARK]){0}, &encoder));
    assert_ok(row_encoder_begin(encoder, &out));
    assert_ok(row_encoder_add(encoder, &rows[0], &out));
    buffer_append_byte(&out, '\0');
    assert_string_equal((const char *)out.data, expected);
    buffer_free(&out);
    row_encoder_destroy(encoder);
    arena_destroy(arena);
}

static void columns_are_written(void **state)
{
    const struct field_words columns = {NULL, "n=f:q,m=g:x", "n=hex", NULL, NULL};
    const struct field_words family = {NULL, NULL, NULL, "f", NULL};
    (void)state;
    check_text(ROWS_CSV, ROWS_FIELDS, &columns, "row_key,n,m\nplain,6e65776572,\n");
    check_text(ROWS_CSV, ROWS_CBT, &columns, ",f,g\n,q,x\nplain,6e65776572@2000,\n");
    check_text(ROWS_JSONL, ROWS_FIELDS, &columns, "{\"row_key\":\"plain\",\"n\":\"6e65776572\"}\n");
    check_text(ROWS_JSONL, ROWS_FIELDS, &family, "{\"row_key\":\"plain\",\"q\":\"newer\"}\n");
}

static void what_a_form_cannot_hold_is_refused(void **state)
{
    static const struct {
        enum row_kind kind;
        const struct move_change *row;
        struct field_words words;
        const char *message;
    } cases[] = {
        {ROWS_CSV,
         &rows[1],
         {NULL, "q=f:q", "q=int64", NULL, NULL},
         "the value of q has 5 bytes, and its type 8"},
        {ROWS_CSV,
         &empty,
         {NULL, "e=f:e", NULL, NULL, NULL},
         "the value of e is empty, which this form cannot say"},
        {ROWS_JSONL, &rows[1], {NULL, "q=f:q", NULL, NULL, NULL}, "the row key is not UTF-8"},
        {ROWS_JSONL,
         &raw,
         {NULL, "b=g:", NULL, NULL, NULL},
         "the value of b is not UTF-8: --types says base64 or hex"},
    };
    struct arena *arena = arena_create(ARENA_LIMIT);
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct row_format format = {.kind = cases[i].kind, .form = ROWS_FIELDS, .delimiter = ','};
        struct row_encoder *encoder;
        struct buffer out = {0};
        assert_ok(field_layout_parse(&cases[i].words, arena, &format.layout));
        assert_ok(row_encoder_create(&format, (const uint8_t[AVRO_MARK]){0}, &encoder));
        status s = row_encoder_add(encoder, cases[i].row, &out);
        assert_string_equal(status_message(s), cases[i].message);
        assert_status(s, STATUS_INVALID_ARGUMENT);
        assert_int_equal(out.size, 0);
        buffer_free(&out);
        row_encoder_destroy(encoder);
    }
    arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(cells_of_a_row_stand_together, setup, teardown),
        cmocka_unit_test_setup_teardown(a_wrong_line_is_that_of_its_row, setup, teardown),
        cmocka_unit_test_setup_teardown(cbt_files_are_read, setup, teardown),
        cmocka_unit_test_setup_teardown(headers_that_make_no_sense_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(fields_are_read_from_csv_and_json, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_written_comes_back, setup, teardown),
        cmocka_unit_test(columns_are_written),
        cmocka_unit_test(what_a_form_cannot_hold_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
