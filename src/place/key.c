/* See key.h. Whatever is derived is HMAC-SHA256 by the master key, of a word that says for what. */
#include "place/key.h"

#include "os/digest.h"
#include "os/file.h"

enum { MOST_FILE = 128, DIGITS = 2 * CIPHER_KEY_BYTES, NOT_FOR_OTHERS = 027 };

static const char FOR_ID[] = "trestle key id";
static const char FOR_OBJECT[] = "trestle object key";
static const char FOR_NAME[] = "trestle content name";

/* The word with its NUL, and what follows it, which is of one size for each. */
static status derive(const struct place_key *key, const char *what, bytes more,
                     uint8_t out[HMAC_SHA256_BYTES])
{
    uint8_t text[64];
    size_t size = strlen(what) + 1;
    memcpy(text, what, size);
    if (more.size > 0)
        memcpy(text + size, more.data, more.size);
    return hmac_sha256(bytes_make(key->master, sizeof key->master),
                       bytes_make(text, size + more.size), out);
}

status place_key_make(const uint8_t master[CIPHER_KEY_BYTES], struct place_key *out)
{
    uint8_t id[HMAC_SHA256_BYTES];
    memcpy(out->master, master, sizeof out->master);
    TRY(derive(out, FOR_ID, bytes_make(NULL, 0), id));
    memcpy(out->id, id, sizeof out->id);
    return status_ok();
}

status place_key_of_object(const struct place_key *key, const uint8_t salt[PLACE_SALT_BYTES],
                           uint8_t out[CIPHER_KEY_BYTES])
{
    return derive(key, FOR_OBJECT, bytes_make(salt, PLACE_SALT_BYTES), out);
}

status place_key_hide(const struct place_key *key, const uint8_t digest[32], uint8_t out[32])
{
    return derive(key, FOR_NAME, bytes_make(digest, 32), out);
}

/* --- the file --- */

static int digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool parse(bytes text, uint8_t master[CIPHER_KEY_BYTES])
{
    if (text.size == DIGITS + 1 && text.data[DIGITS] == '\n')
        text.size--;
    if (text.size != DIGITS)
        return false;
    for (size_t i = 0; i < CIPHER_KEY_BYTES; i++) {
        int high = digit(text.data[2 * i]), low = digit(text.data[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        master[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

status place_key_read(const char *path, struct place_key *out)
{
    struct buffer text = {0};
    uint8_t master[CIPHER_KEY_BYTES];
    TRY(file_read(path, MOST_FILE, NOT_FOR_OTHERS, &text));
    status s = parse(buffer_bytes(&text), master)
                   ? place_key_make(master, out)
                   : status_make(STATUS_INVALID_ARGUMENT,
                                 "%s has no key: 64 hexadecimal digits, as of `openssl rand -hex "
                                 "32`",
                                 path);
    cipher_forget(text.data, text.size);
    cipher_forget(master, sizeof master);
    buffer_free(&text);
    return s;
}
