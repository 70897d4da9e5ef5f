/* Numbers out of the bytes of cells, bits, and what else has no better place. */
#include "sql/functions/function_tables.h"

#include "base/big_endian.h"

#include <endian.h>
#include <sys/random.h>

/* --- numbers in big-endian bytes, as increments and clients write them --- */

/* Not OUT_OF_RANGE: so it is in production, and SAFE does not help. */
static status check_size(bytes text, size_t size)
{
    if (text.size == size)
        return status_ok();
    return status_make(STATUS_INVALID_ARGUMENT,
                       "incorrect value size. expected: %zu bytes, actual: %zu bytes", size,
                       text.size);
}

static double read_float64(const uint8_t *data)
{
    uint64_t word = big_endian_read(data);
    double value;
    memcpy(&value, &word, sizeof value);
    return value;
}

static double read_float32(const uint8_t *data)
{
    uint32_t word;
    float value;
    memcpy(&word, data, sizeof word);
    word = be32toh(word);
    memcpy(&value, &word, sizeof value);
    return value;
}

static status to_int64(const struct sql_call *call, const struct sql_value *args, size_t count,
                       struct sql_value *out)
{
    (void)call, (void)count;
    TRY(check_size(args[0].text, sizeof(int64_t)));
    *out = sql_of_int64((int64_t)big_endian_read(args[0].text.data));
    return status_ok();
}

static status to_float64(const struct sql_call *call, const struct sql_value *args, size_t count,
                         struct sql_value *out)
{
    (void)call, (void)count;
    TRY(check_size(args[0].text, sizeof(double)));
    *out = sql_of_float64(read_float64(args[0].text.data));
    return status_ok();
}

static status to_float32(const struct sql_call *call, const struct sql_value *args, size_t count,
                         struct sql_value *out)
{
    (void)call, (void)count;
    TRY(check_size(args[0].text, sizeof(float)));
    *out = sql_of_float64(read_float32(args[0].text.data));
    return status_ok();
}

/* --- vectors: such numbers, one after the other --- */

static status to_vector(const struct sql_call *call, bytes text, size_t size,
                        double read(const uint8_t *data), struct sql_value *out)
{
    size_t count = text.size / size;
    if (text.size % size != 0)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "incorrect value size. expected: a multiple of %zu bytes, actual: %zu "
                           "bytes",
                           size, text.size);
    struct sql_value *items = sql_items_alloc(call->arena, count);
    if (items == NULL)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++)
        items[i] = sql_of_float64(read(text.data + i * size));
    *out = sql_of_items(items, count);
    return status_ok();
}

static status to_vector32(const struct sql_call *call, const struct sql_value *args, size_t count,
                          struct sql_value *out)
{
    (void)count;
    return to_vector(call, args[0].text, sizeof(float), read_float32, out);
}

static status to_vector64(const struct sql_call *call, const struct sql_value *args, size_t count,
                          struct sql_value *out)
{
    (void)count;
    return to_vector(call, args[0].text, sizeof(double), read_float64, out);
}

/* --- bits --- */

static status bit_count_int64(const struct sql_call *call, const struct sql_value *args,
                              size_t count, struct sql_value *out)
{
    (void)call, (void)count;
    *out = sql_of_int64(__builtin_popcountll((unsigned long long)args[0].int64));
    return status_ok();
}

static status bit_count_bytes(const struct sql_call *call, const struct sql_value *args,
                              size_t count, struct sql_value *out)
{
    (void)call, (void)count;
    int64_t bits = 0;
    for (size_t i = 0; i < args[0].text.size; i++)
        bits += __builtin_popcount(args[0].text.data[i]);
    *out = sql_of_int64(bits);
    return status_ok();
}

/* --- UUIDs --- */

enum { UUID_BYTES = 16, UUID_TEXT = 36, UUID_VERSION = 6, UUID_VARIANT = 8 };

static char *write_hex(char *at, uint8_t byte)
{
    static const char digits[] = "0123456789abcdef";
    at[0] = digits[byte >> 4];
    at[1] = digits[byte & 15];
    return at + 2;
}

/* Version 4 of RFC 9562: random, except for six bits. */
static status generate_uuid(const struct sql_call *call, const struct sql_value *args, size_t count,
                            struct sql_value *out)
{
    (void)args, (void)count;
    uint8_t random[UUID_BYTES];
    char *text = arena_alloc(call->arena, UUID_TEXT);
    if (text == NULL)
        return status_out_of_memory();
    if (getrandom(random, sizeof random, 0) != sizeof random)
        return status_make(STATUS_INTERNAL, "The system has no random bytes");
    random[UUID_VERSION] = (uint8_t)(0x40 | (random[UUID_VERSION] & 0x0f));
    random[UUID_VARIANT] = (uint8_t)(0x80 | (random[UUID_VARIANT] & 0x3f));
    char *at = text;
    for (size_t i = 0; i < UUID_BYTES; i++) {
        if (i == 4 || i == UUID_VERSION || i == UUID_VARIANT || i == 10)
            *at++ = '-';
        at = write_hex(at, random[i]);
    }
    *out = sql_of_text(bytes_make(text, UUID_TEXT));
    return status_ok();
}

/* --- what a parameterized view is asked with --- */

static status view_parameters(const struct sql_call *call, const struct sql_value *args,
                              size_t count, struct sql_value *out)
{
    (void)count;
    bytes name = args[0].text;
    for (size_t i = 0; i < call->session->view_parameter_count; i++)
        if (bytes_equal(bytes_of(call->session->view_parameters[i].name), name)) {
            *out = call->session->view_parameters[i].value;
            return status_ok();
        }
    return status_make(STATUS_INVALID_ARGUMENT, "view_parameters does not contain key '%.*s'",
                       (int)name.size, (const char *)name.data);
}

const struct sql_function sql_conversion_functions[] = {
    {"TO_INT64", "INT64(BYTES)", to_int64},
    {"TO_FLOAT32", "FLOAT32(BYTES)", to_float32},
    {"TO_FLOAT64", "FLOAT64(BYTES)", to_float64},
    {"TO_VECTOR32", "ARRAY<FLOAT32>(BYTES)", to_vector32},
    {"TO_VECTOR64", "ARRAY<FLOAT64>(BYTES)", to_vector64},
    {"BIT_COUNT", "INT64(INT64)", bit_count_int64},
    {"BIT_COUNT", "INT64(BYTES)", bit_count_bytes},
    {"GENERATE_UUID", "STRING()", generate_uuid, SQL_VOLATILE},
    {"VIEW_PARAMETERS", "STRING(STRING)", view_parameters, SQL_STABLE},
    {0},
};
