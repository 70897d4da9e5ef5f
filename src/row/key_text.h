/* Texts inside keys, so that bytes order as what is made of the texts does: 00 becomes 00 FF, and
 * 00 01 ends the text. `flip` is 00, or FF where every byte of the key is inverted, which turns the
 * order around. */
#ifndef TRESTLE_ROW_KEY_TEXT_H
#define TRESTLE_ROW_KEY_TEXT_H

#include "base/bytes.h"

enum { KEY_TEXT_ZERO = 0x00, KEY_TEXT_ESCAPED = 0xff, KEY_TEXT_END = 0x01 };

/* Both append; failures show in out->failed. An open text has no end: longer ones begin with it. */
void key_text_append(struct buffer *out, bytes text);
void key_text_append_open(struct buffer *out, bytes text);

/* Bytes that the text at the start of `key` takes, its end included; 0 if it has none, or is no
 * text. */
size_t key_text_size(bytes key, uint8_t flip);

/* What was appended; `text` is what key_text_size measured. Writes to `to` at most text.size - 2
 * bytes, to which the result points. */
bytes key_text_read(bytes text, uint8_t flip, uint8_t *to);

#endif
