/* See http_packer.h. */
#include "wire/http_packer.h"

#include <stdlib.h>
#include <zlib.h>

enum {
    WINDOW = 14 + 16, /* 16 KiB, and zlib's way to say: the gzip format */
    MEMORY = 7,       /* with that 128 KiB for each answer that is under way */
    PIECE = 4096,
};

struct http_packer {
    z_stream stream;
};

struct http_packer *http_packer_create(void)
{
    struct http_packer *packer = calloc(1, sizeof *packer);
    if (packer == NULL)
        return NULL;
    if (deflateInit2(&packer->stream, Z_BEST_SPEED, Z_DEFLATED, WINDOW, MEMORY,
                     Z_DEFAULT_STRATEGY) == Z_OK)
        return packer;
    free(packer);
    return NULL;
}

void http_packer_destroy(struct http_packer *packer)
{
    if (packer == NULL)
        return;
    deflateEnd(&packer->stream);
    free(packer);
}

void http_packer_add(struct http_packer *packer, bytes more, bool is_last, struct buffer *out)
{
    z_stream *stream = &packer->stream;
    uint8_t piece[PIECE];
    stream->next_in = (Bytef *)(uintptr_t)more.data;
    stream->avail_in = (uInt)more.size;
    do {
        stream->next_out = piece;
        stream->avail_out = sizeof piece;
        deflate(stream, is_last ? Z_FINISH : Z_SYNC_FLUSH);
        buffer_append(out, piece, sizeof piece - stream->avail_out);
    } while (stream->avail_out == 0);
}
