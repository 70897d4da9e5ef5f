/* See plain_text.h. Each byte of the text stands for one or more of the source, in their order: a
 * hotspot for what it says, a hotspot that says nothing here for a backslash, at which words end.
 */
#include "advisor/plain_text.h"

#include "advisor/key_start.h"

#include <ctype.h>

/* A byte, and how many of the source it stands for. */
struct step {
    uint8_t byte;
    size_t size;
};

static unsigned hex_value(uint8_t c)
{
    return (unsigned)(isdigit(c) ? c - '0' : tolower(c) - 'a' + 10);
}

static size_t hex_digits_at(bytes text, size_t at, size_t most)
{
    size_t size = 0;
    while (size < most && at + size < text.size && isxdigit(text.data[at + size]))
        size++;
    return size;
}

/* What is beyond a byte is a letter of another alphabet, and so is this. */
static uint8_t hex_byte(bytes text, size_t at, size_t digits)
{
    unsigned number = 0;
    for (size_t i = 0; i < digits; i++)
        number = number > UINT8_MAX ? number : number << 4 | hex_value(text.data[at + i]);
    return number > UINT8_MAX ? UINT8_MAX : (uint8_t)number;
}

/* \xNN, \x{N} and \uNNNN, whose letter stands at `at`; a size of 0: it is none. */
static struct step numbered(bytes source, size_t at)
{
    enum { OF_BYTE = 2, OF_UNIT = 4, OF_CODE = 8 };
    uint8_t letter = source.data[at];
    bool is_braced = letter == 'x' && at + 1 < source.size && source.data[at + 1] == '{';
    size_t start = at + 1 + is_braced, wanted = letter == 'u' ? OF_UNIT : OF_BYTE;
    size_t digits = hex_digits_at(source, start, is_braced ? OF_CODE : wanted);
    size_t end = start + digits;
    bool is_closed =
        is_braced ? digits > 0 && end < source.size && source.data[end] == '}' : digits == wanted;
    if ((letter != 'x' && letter != 'u') || !is_closed)
        return (struct step){0, 0};
    return (struct step){hex_byte(source, start, digits), end + is_braced - at};
}

/* Behind as many backslashes as there are, since what quotes doubles them: a mark stands for
 * itself, and an end of a word or a quotation for none. */
static struct step behind_backslash(bytes source, size_t at)
{
    size_t start = at;
    while (at < source.size && source.data[at] == '\\')
        at++;
    if (at == source.size)
        return (struct step){'\\', at - start};
    uint8_t c = source.data[at];
    struct step number = numbered(source, at);
    if (number.size > 0)
        return (struct step){number.byte, at + number.size - start};
    if (!isalnum(c))
        return (struct step){c, at + 1 - start};
    return (struct step){'\\', at + is_one_of(c, "QEAzbB") - start};
}

/* %40, and %2540, which has been encoded twice. Nobody encodes letters and digits, so that %41 is
 * the beginning of a number behind what LIKE takes for anything. */
static struct step behind_percent(bytes source, size_t at)
{
    size_t start = at + 1;
    while (hex_digits_at(source, start, 4) == 4 && source.data[start] == '2' &&
           source.data[start + 1] == '5')
        start += 2;
    if (hex_digits_at(source, start, 2) == 2) {
        uint8_t byte = hex_byte(source, start, 2);
        if (!isalnum(byte))
            return (struct step){byte, start + 2 - at};
    }
    return (struct step){'%', 1};
}

/* [@], a class of one. */
static bool is_class_of_one(bytes source, size_t at)
{
    return at + 2 < source.size && source.data[at + 2] == ']' && !isalnum(source.data[at + 1]) &&
           source.data[at + 1] != '\\';
}

static struct step step_at(bytes source, size_t at)
{
    switch (source.data[at]) {
    case '\\':
        return behind_backslash(source, at);
    case '%':
        return behind_percent(source, at);
    case '[':
        if (is_class_of_one(source, at))
            return (struct step){source.data[at + 1], 3};
        break;
    default:
        break;
    }
    return (struct step){source.data[at], 1};
}

bool plain_text_differs(bytes source)
{
    return source.size > 0 && (memchr(source.data, '\\', source.size) != NULL ||
                               memchr(source.data, '%', source.size) != NULL ||
                               memchr(source.data, '[', source.size) != NULL);
}

void plain_text_make(bytes source, struct plain_text *out)
{
    size_t at = 0;
    *out = (struct plain_text){.text = {0}};
    while (at < source.size) {
        struct step step = step_at(source, at);
        buffer_append(&out->places, &at, sizeof at);
        buffer_append_byte(&out->text, step.byte);
        at += step.size;
    }
    buffer_append(&out->places, &at, sizeof at);
    out->text.failed |= out->places.failed;
}

size_t plain_text_place(const struct plain_text *plain, size_t at)
{
    return ((const size_t *)(const void *)plain->places.data)[at];
}

void plain_text_free(struct plain_text *plain)
{
    buffer_free(&plain->text);
    buffer_free(&plain->places);
}
