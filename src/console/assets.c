/* See assets.h. */
#include "console/assets.h"

#include "console/asset_table.h"

enum { NOT_MODIFIED = 304 };

const struct asset *asset_find(bytes path)
{
    for (size_t i = 0; i < asset_count; i++)
        if (bytes_equal(path, bytes_of(asset_table[i].path)))
            return &asset_table[i];
    return NULL;
}

static bool is_kept(const struct http_request *request)
{
    bytes tag;
    return http_request_header(request, "if-none-match", &tag) &&
           bytes_equal(tag, bytes_of(assets_tag));
}

void asset_answer(const struct asset *asset, struct http_request *request)
{
    http_answer_caching(request,
                        asset->is_page ? "no-cache" : "public, max-age=31536000, immutable");
    http_answer_header(request, "vary", "accept-encoding");
    if (asset->is_page)
        http_answer_header(request, "etag", assets_tag);
    if (asset->is_page && is_kept(request)) {
        http_answer_begin(request, NOT_MODIFIED, NULL);
        http_answer_end(request);
        return;
    }
    bool is_packed = http_request_takes_gzip(request);
    if (is_packed)
        http_answer_header(request, "content-encoding", "gzip");
    http_answer_begin(request, 200, asset->type);
    http_answer_add(request, is_packed ? asset->packed : asset->plain);
    http_answer_end(request);
}
