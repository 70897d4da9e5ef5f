/* Fuzzer: Avro object container files.
 *
 * Reading comes to an end, with memory that the file's size bounds, and becomes rows or refusals,
 * as what Google's template writes and as records of fields.
 *
 * Input: a file; but where it does not begin as one, a schema's number, and a block that follows a
 * header of ours: random bytes would seldom get that far. */
#include "formats/row_file_private.h"

#include "base/testing/fuzzing.h"

enum { ARENA_LIMIT = 4 << 20, OBJECTS_MOST = 1000 };

static const char bigtable_row[] =
    "{\"name\":\"R\",\"type\":\"record\",\"fields\":[{\"name\":\"key\",\"type\":\"bytes\"},"
    "{\"name\":\"cells\",\"type\":{\"type\":\"array\",\"items\":{\"name\":\"C\",\"type\":"
    "\"record\",\"fields\":[{\"name\":\"family\",\"type\":\"string\"},{\"name\":\"qualifier\","
    "\"type\":\"bytes\"},{\"name\":\"timestamp\",\"type\":[\"null\",\"long\"]},"
    "{\"name\":\"value\",\"type\":\"bytes\"}]}}}]}";
static const char all_types[] =
    "{\"name\":\"n.R\",\"type\":\"record\",\"fields\":[{\"name\":\"key\",\"type\":\"string\"},"
    "{\"name\":\"d\",\"type\":\"double\"},{\"name\":\"f\",\"type\":\"float\"},"
    "{\"name\":\"e\",\"type\":{\"type\":\"enum\",\"name\":\"E\",\"symbols\":[\"A\",\"B\"]}},"
    "{\"name\":\"x\",\"type\":{\"type\":\"fixed\",\"name\":\"F\",\"size\":3}},"
    "{\"name\":\"m\",\"type\":{\"type\":\"map\",\"values\":[\"null\",\"int\",\"E\",\"n.R\"]}},"
    "{\"name\":\"b\",\"type\":\"boolean\"},{\"name\":\"next\",\"type\":[\"null\",\"R\"]}]}";
static const char of_no_bytes[] =
    "{\"name\":\"R\",\"type\":\"record\",\"fields\":[{\"name\":\"key\","
    "\"type\":\"null\"}]}";
static const char nulls[] = "{\"name\":\"R\",\"type\":\"record\",\"fields\":[{\"name\":\"key\","
                            "\"type\":{\"type\":\"array\",\"items\":\"null\"}}]}";

static const char *const schemas[] = {bigtable_row, all_types, of_no_bytes, nulls};

static void read_objects(struct avro_reader *reader, struct arena *arena)
{
    static struct field_part key[] = {{.text = {(const uint8_t *)"key", 3}, .is_field = true}};
    const struct row_format rows = {.kind = ROWS_AVRO, .form = ROWS_CELLS};
    const struct row_format fields = {.kind = ROWS_AVRO,
                                      .form = ROWS_FIELDS,
                                      .layout = {.key = key, .key_count = 1, .family = "f"}};
    bool is_end = false;
    status s = status_ok();
    for (unsigned i = 0; i < OBJECTS_MOST && status_is_ok(s) && !is_end; i++) {
        struct avro_value object;
        struct move_change row;
        arena_reset(arena);
        s = avro_next(reader, arena, &object, &is_end);
        if (!status_is_ok(s) || is_end)
            break;
        status_free(avro_row(&object, &rows, arena, &row));
        status_free(avro_row(&object, &fields, arena, &row));
    }
    CHECK(status_is_ok(s) || s.code == STATUS_DATA_LOSS || s.code == STATUS_RESOURCE_EXHAUSTED);
    status_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_create(ARENA_LIMIT);
    struct buffer file = {0};
    struct input *input;
    struct avro_reader *reader = NULL;
    uint8_t mark[AVRO_MARK] = "0123456789abcde";
    CHECK(arena != NULL);
    bool is_file = size > 2 && data[0] == 'O';
    if (is_file || size == 0) {
        buffer_append(&file, data, size);
    } else {
        bytes block = bytes_make(data + 1, size - 1);
        avro_write_header(schemas[data[0] & 3], (data[0] & 4) != 0, mark, &file);
        status_free(avro_write_block(1 + (data[0] >> 4), block, (data[0] & 4) != 0, mark, &file));
    }
    CHECK(!file.failed);
    status s = input_open_bytes(buffer_bytes(&file), &input);
    if (status_is_ok(s))
        s = avro_reader_create(input, &reader);
    if (status_is_ok(s))
        read_objects(reader, arena);
    CHECK(status_is_ok(s) || s.code == STATUS_DATA_LOSS || s.code == STATUS_RESOURCE_EXHAUSTED ||
          s.code == STATUS_UNIMPLEMENTED);
    status_free(s);
    avro_reader_destroy(reader);
    input_close(input);
    buffer_free(&file);
    arena_destroy(arena);
    return 0;
}
