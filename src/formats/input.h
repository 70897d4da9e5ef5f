/* A file of lines, as imports read it: plain or gzip, whichever it is; also several gzip members
 * one behind the other.
 *
 * A file ends in one of three ways: at its end; in the middle of a gzip member, which is DATA_LOSS
 * (the lines before have been given out); by a failure of the system. Memory is two buffers and the
 * longest line.
 *
 * Used by one thread at a time. A gzip file of more than a megabyte of text is unpacked by another
 * thread, ahead of what is asked for, which takes 2 MB more; where there is no memory for that, or
 * no thread, by the caller's. */
#ifndef TRESTLE_FORMATS_INPUT_H
#define TRESTLE_FORMATS_INPUT_H

#include "base/status.h"

struct input;

/* Bytes. A row of 256 MB has a line of 350 MB in base64. */
enum { INPUT_LINE_MOST = 512 << 20 };

/* "-" is standard input. NOT_FOUND, PERMISSION_DENIED, … */
status input_open(const char *path, struct input **out);
/* Opens bytes in memory, which outlive the input. */
status input_open_bytes(bytes content, struct input **out);
void input_close(struct input *input); /* NULL is fine */

/* Longer lines than these are refused; INPUT_LINE_MOST at first. */
void input_limit_lines(struct input *input, size_t most);
size_t input_line_limit(const struct input *input);

/* The next line without its line feed (nor the carriage return before it), until the next call;
 * the last one needs no line feed. `*is_end`: there is none, and `line` is not set. A line of more
 * than the limit is OUT_OF_RANGE; the next call goes on behind it. */
status input_line(struct input *input, bytes *line, bool *is_end);

/* A line of nothing but white space is none, in files of JSON. */
bool input_line_is_blank(bytes line);

/* The next `size` bytes at most, for formats without lines; fewer only at the end: 0 there. Not to
 * be mixed with input_line. */
status input_read(struct input *input, uint8_t *to, size_t size, size_t *taken);

/* The number of the line that came last, from 1. */
uint64_t input_line_number(const struct input *input);

/* How much of the file has been read, and how large it is (0: not known): bytes as they lie there.
 * Where another thread unpacks, what it has read ahead counts in part. */
uint64_t input_bytes_read(const struct input *input);
uint64_t input_bytes_total(const struct input *input);

#endif
