/* Values of SQL expressions.
 *
 * A value does not say its type: its holder has the type beside it (expr.h). It owns nothing; what
 * it points to lives in its maker's arena, or in the row that was read. */
#ifndef TRESTLE_SQL_VALUE_H
#define TRESTLE_SQL_VALUE_H

#include "sql/type.h"

struct sql_value {
    bool is_null;
    /* The weight of walking through a value: of a text, its bytes by SQL_WEIGHT_BYTES; of items,
     * one each and what they weigh. Parts that are shared count each time: a value may be far
     * larger than the memory that it takes. UINT32_MAX: at least that. */
    uint32_t weight;
    union {
        bool boolean;
        int64_t int64;  /* also ENUM; DATE: days since 1970-01-01; TIMESTAMP: microseconds since */
        double float64; /* FLOAT32 too: always a value that a float can have */
        bytes text;     /* STRING (valid UTF-8), BYTES, PROTO */
        struct {
            const struct sql_value *items;
            size_t count; /* an array's elements; a struct's fields; a map's keys and values in
                           * turn, with keys rising and no key twice */
        };
    };
};

enum { SQL_WEIGHT_BYTES = 16 };

/* The heaviest value that there may be: some 256 MB of text. Beyond: RESOURCE_EXHAUSTED. */
enum { SQL_WEIGHT_LIMIT = 16 << 20 };

/* Limits of the calendar: 0001-01-01 to 9999-12-31, and in microseconds. */
enum { SQL_DATE_MIN = -719162, SQL_DATE_MAX = 2932896 };
#define SQL_TIMESTAMP_MIN (INT64_C(-62135596800000000))
#define SQL_TIMESTAMP_MAX (INT64_C(253402300799999999))

static inline struct sql_value sql_null(void)
{
    return (struct sql_value){.is_null = true};
}

static inline struct sql_value sql_of_bool(bool boolean)
{
    return (struct sql_value){.boolean = boolean};
}

static inline struct sql_value sql_of_int64(int64_t int64)
{
    return (struct sql_value){.int64 = int64};
}

static inline struct sql_value sql_of_float64(double float64)
{
    return (struct sql_value){.float64 = float64};
}

static inline uint32_t sql_weight_of(uint64_t weight)
{
    return weight < UINT32_MAX ? (uint32_t)weight : UINT32_MAX;
}

static inline struct sql_value sql_of_text(bytes text)
{
    return (struct sql_value){.weight = sql_weight_of(text.size / SQL_WEIGHT_BYTES), .text = text};
}

/* The weight of so many values together. */
static inline uint64_t sql_weigh(const struct sql_value *values, size_t count)
{
    uint64_t weight = count;
    for (size_t i = 0; i < count; i++)
        weight += values[i].weight;
    return weight;
}

/* The items are there already. */
static inline struct sql_value sql_of_items(const struct sql_value *items, size_t count)
{
    uint32_t weight = sql_weight_of(sql_weigh(items, count));
    return (struct sql_value){.weight = weight, .items = items, .count = count};
}

/* Room for so many items in the arena; NULL without it, or if there never could be. */
static inline struct sql_value *sql_items_alloc(struct arena *arena, uint64_t count)
{
    size_t size;
    bool overflows = __builtin_mul_overflow(count, sizeof(struct sql_value), &size);
    return overflows ? NULL : (struct sql_value *)arena_alloc(arena, size);
}

/* The type of item `index` of an array, a struct, a map. */
static inline const struct sql_type *sql_item_type(const struct sql_type *type, size_t index)
{
    if (type->kind == SQL_STRUCT)
        return type->fields[index].type;
    return type->kind == SQL_MAP && index % 2 == 0 ? type->key : type->element;
}

/* A copy, all of it in the arena. RESOURCE_EXHAUSTED. */
status sql_value_copy(const struct sql_type *type, const struct sql_value *value,
                      struct arena *arena, struct sql_value *out);

/* As `=`: NULL unless it can be told (a struct with a NULL field may still be unequal). NaN equals
 * nothing. Types with equality, or maps' keys. */
struct sql_value sql_value_equals(const struct sql_type *type, const struct sql_value *a,
                                  const struct sql_value *b);

/* As `<` of two that are not NULL and not NaN: negative, zero, positive. */
int sql_value_order(const struct sql_type *type, const struct sql_value *a,
                    const struct sql_value *b);

/* The same, with -0.0 before 0.0: so which is the least, or the greatest, of several does not
 * depend on the order in which they come. */
int sql_value_total_order(const struct sql_type *type, const struct sql_value *a,
                          const struct sql_value *b);

/* The total order of ORDER BY: NULL, NaN, -inf … +inf, -0 = 0; arrays by elements, then by length.
 * Also of structs, field by field: it serves DISTINCT and GROUP BY, where what is equal in it is
 * one group. */
int sql_value_compare(const struct sql_type *type, const struct sql_value *a,
                      const struct sql_value *b);

/* Equal for what sql_value_compare finds equal. */
uint64_t sql_value_hash(const struct sql_type *type, const struct sql_value *value);

/* As it is written in a query: NULL, 1, "a", b"x", DATE "2014-01-01", [1, 2], (1, "x"): what
 * FORMAT('%T') gives (value_text.c). */
void sql_value_append_literal(struct buffer *out, const struct sql_type *type,
                              const struct sql_value *value);

/* As CAST AS STRING writes it, for what has no parts. */
void sql_value_append_text(struct buffer *out, const struct sql_type *type,
                           const struct sql_value *value);

/* A number of the type FLOAT64 or FLOAT32, with the fewest digits that are read back as the same.
 */
void sql_float_append(struct buffer *out, double value, bool is_float32);

/* The value at a key of a map, or NULL if there is none. */
const struct sql_value *sql_map_find(const struct sql_type *map, const struct sql_value *value,
                                     const struct sql_value *key);

#endif
