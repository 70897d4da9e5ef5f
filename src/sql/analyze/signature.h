/* Signatures of functions, as function.h writes them, read. */
#ifndef TRESTLE_SQL_ANALYZE_SIGNATURE_H
#define TRESTLE_SQL_ANALYZE_SIGNATURE_H

#include "sql/type.h"

enum pattern_kind {
    PATTERN_TYPE,   /* type */
    PATTERN_ANY,    /* letter: T, K, V, U */
    PATTERN_ARRAY,  /* parts: the element */
    PATTERN_MAP,    /* parts: key, value */
    PATTERN_STRUCT, /* parts: fields */
    PATTERN_LAMBDA, /* parts: its arguments, and then its result */
    PATTERN_PART,
};

enum pattern_bound {
    BOUND_NONE,
    BOUND_EQUALITY,
    BOUND_ORDER,
    BOUND_ORDERABLE,
    BOUND_GROUPABLE,
    BOUND_ELEMENT
};

struct pattern {
    enum pattern_kind kind;
    const struct sql_type *type;
    char letter;
    enum pattern_bound bound;
    const char *field; /* its name in a struct */
    struct pattern *parts;
    struct pattern *next;
    bool is_optional;
    bool is_repeated;
};

struct signature {
    struct pattern *result;
    struct pattern *args;
};

/* `text` is ours: a mistake in it is a bug. RESOURCE_EXHAUSTED. */
status signature_read(const char *text, struct arena *arena, struct signature *out);

/* --- what the letters stand for --- */

enum { SIGNATURE_LETTERS = 26 };

struct letters {
    const struct sql_type *types[SIGNATURE_LETTERS]; /* NULL: not known */
};

/* Whether the type has the pattern's form; letters that are not known become so. */
bool pattern_unify(const struct pattern *pattern, const struct sql_type *type,
                   struct letters *letters);

/* The pattern's type; NULL if a letter is not known. RESOURCE_EXHAUSTED. */
status pattern_type(const struct pattern *pattern, const struct letters *letters,
                    struct arena *arena, const struct sql_type **out);

/* The type a letter stands for. */
static inline const struct sql_type **letter_type(struct letters *letters, char letter)
{
    return &letters->types[letter - 'A'];
}

#endif
