/* See settings.h. */
#include "cluster/stream/settings.h"

#include "base/check.h"
#include "cluster/cluster.h"
#include "cluster/stream/stream_upkeep.h"

#include <errno.h>
#include <sys/random.h>

int64_t table_stream_oldest(const struct table_stream *stream, int64_t now_us)
{
    int64_t kept_us = now_us - stream->retention_us;
    return kept_us > stream->from_us ? kept_us : stream->from_us;
}

static status begin_life(int64_t now_us, struct table_stream *stream)
{
    if (getrandom(&stream->life, sizeof stream->life, 0) != sizeof stream->life)
        return status_from_errno(errno, "no random number for a change stream");
    stream->life |= 1; /* never 0 */
    stream->from_us = now_us;
    return status_ok();
}

status table_stream_change(struct cluster *cluster, int64_t retention_us,
                           struct table_stream *stream)
{
    DCHECK(retention_us >= 0);
    if (retention_us == 0) {
        *stream = (struct table_stream){0};
        return status_ok();
    }
    TRY(stream_logs_begin(cluster));
    int64_t now_us = cluster_version_us(cluster);
    if (stream->retention_us == 0)
        TRY(begin_life(now_us, stream));
    else
        stream->from_us = table_stream_oldest(stream, now_us);
    stream->retention_us = retention_us;
    return status_ok();
}
