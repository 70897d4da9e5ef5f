/* Avro: schemas, values, and object container files (Apache Avro specification, 1.11).
 *
 *     file      "Obj" 01, a map of metadata (avro.schema, avro.codec), 16 bytes that mark blocks
 *     block     how many objects, how many bytes, the bytes, the mark again
 *
 * Read with the schema that the file brings: all of Avro's types; codecs null and deflate. What a
 * file says of its sizes is believed as far as its bytes go: memory follows what was read, and what
 * the arena allows. Our own reader, for Debian's (avro-c 1.11.1) asks for as much memory as any
 * length in a file says, 15 GB for one of 44 bytes, and reads from files alone. */
#ifndef TRESTLE_FORMATS_AVRO_H
#define TRESTLE_FORMATS_AVRO_H

#include "base/arena.h"
#include "formats/input.h"

enum avro_kind {
    AVRO_NULL,
    AVRO_BOOLEAN,
    AVRO_INT,
    AVRO_LONG,
    AVRO_FLOAT,
    AVRO_DOUBLE,
    AVRO_BYTES,
    AVRO_STRING,
    AVRO_RECORD,
    AVRO_ENUM,
    AVRO_ARRAY,
    AVRO_MAP,
    AVRO_UNION,
    AVRO_FIXED,
};

enum { AVRO_MOST_DEPTH = 64 }; /* of types within types, and of values */

/* A type of a schema; records may contain themselves. An arena's. */
struct avro_type {
    enum avro_kind kind;
    bytes name;               /* RECORD, ENUM, FIXED: with its namespace */
    size_t count;             /* of what follows */
    struct avro_type **types; /* a record's fields, a union's branches; an array's or map's one */
    bytes *names;             /* of a record's fields, an enum's symbols */
    size_t size;              /* FIXED */
};

/* INVALID_ARGUMENT for what is no schema. */
status avro_schema_read(bytes json, struct arena *arena, struct avro_type **out);

/* A value. A union's is that of its branch. */
struct avro_value {
    enum avro_kind kind;
    int64_t integer; /* BOOLEAN, INT, LONG */
    double number;   /* FLOAT, DOUBLE */
    bytes text;      /* BYTES, STRING, FIXED; an ENUM's symbol. Not checked for UTF-8 */
    size_t count;    /* ARRAY, MAP, RECORD */
    struct avro_value *elements;
    bytes name; /* of an element of a MAP or RECORD */
};

/* Takes a value off the front. DATA_LOSS if the bytes are none of the type; RESOURCE_EXHAUSTED when
 * the arena is full. Points into the bytes. */
status avro_value_read(const struct avro_type *type, bytes *from, struct arena *arena,
                       struct avro_value *out);

/* The record's field of this name; NULL if it has none. */
const struct avro_value *avro_find(const struct avro_value *record, const char *name);

/* --- container files --- */

struct avro_reader;

/* DATA_LOSS for what is no such file, UNIMPLEMENTED for another codec. The input outlives the
 * reader. */
status avro_reader_create(struct input *input, struct avro_reader **out);
void avro_reader_destroy(struct avro_reader *reader); /* NULL is fine */

/* The type of the file's objects. */
const struct avro_type *avro_reader_type(const struct avro_reader *reader);

/* The next object, until the call after it. DATA_LOSS, with the number of the block, where the file
 * is damaged or ends too early: nothing can be read behind that. */
status avro_next(struct avro_reader *reader, struct arena *arena, struct avro_value *out,
                 bool *is_end);

enum { AVRO_MARK = 16 };

/* Appends a file's beginning. The schema is JSON. */
void avro_write_header(const char *schema, bool is_deflated, const uint8_t mark[AVRO_MARK],
                       struct buffer *out);
/* Appends a block of `count` objects, whose bytes these are. Fails for want of memory. */
status avro_write_block(uint64_t count, bytes objects, bool is_deflated,
                        const uint8_t mark[AVRO_MARK], struct buffer *out);

/* How an object is written: lengths and longs. */
void avro_write_long(int64_t number, struct buffer *out);
void avro_write_bytes(bytes b, struct buffer *out);

#endif
