/* See change_writer.h. */
#include "bigtable/change_writer.h"

#include "base/check.h"

/* --- messages --- */

struct buffer *change_writer_open(struct change_writer *writer)
{
    DCHECK(writer->wire.size == 0);
    grpc_message_start(&writer->wire);
    return &writer->wire;
}

void change_writer_send(struct change_writer *writer)
{
    writer->sent += writer->wire.size;
    grpc_call_send(writer->call, &writer->wire);
}

void change_writer_rest(struct change_writer *writer)
{
    buffer_free(&writer->wire);
    buffer_free(&writer->piece);
    writer->piece_number = 0;
}

/* --- a change --- */

enum { HEAD_BYTES = 256 }; /* about, of a message: its prefix, times, cluster and token */

static status damaged(void)
{
    return status_make(STATUS_DATA_LOSS, "A record of the change stream is damaged");
}

static bool is_first(const struct change_place *place)
{
    return place->mutation == 0 && place->offset == 0;
}

static size_t value_size(const struct list_mutation *mutation)
{
    return mutation->is_apart ? mutation->size : mutation->value.size;
}

/* Whether its value goes out in slices. Readers know no slices of what is added. */
static bool is_cut(const struct list_mutation *mutation)
{
    return mutation->kind == LIST_SET && value_size(mutation) > WRITER_SLICE_BYTES;
}

static void begin_message(struct change_writer *writer, const struct stream_record *record,
                          const struct list_mutation *mutation)
{
    const struct change_head head = {
        .record = record, .cluster_id = stream_source_of(&writer->sources, record->version)};
    bool is_large = record->list.size > WRITER_MESSAGE_BYTES || is_cut(mutation);
    size_t about = is_large ? WRITER_MESSAGE_BYTES : record->list.size;
    writer->has_slice = false;
    (void)buffer_reserve(&writer->wire, about + record->row_key.size + HEAD_BYTES);
    writer->message = change_message_begin(change_writer_open(writer),
                                           is_first(&writer->place) ? &head : NULL, about);
}

static void end_message(struct change_writer *writer, const struct change_end *end)
{
    change_message_end(&writer->message, end);
    change_writer_send(writer);
}

/* Whether the mutation, or its next slice, has to begin another message: one has one slice at most.
 */
static bool is_message_over(const struct change_writer *writer,
                            const struct list_mutation *mutation)
{
    return (writer->has_slice && is_cut(mutation)) || writer->wire.size >= WRITER_MESSAGE_BYTES;
}

/* Makes sure that there is a message with room. False: no more is to be sent now. */
static bool make_room(struct change_writer *writer, const struct stream_record *record,
                      const struct list_mutation *mutation)
{
    if (writer->wire.size > 0 && is_message_over(writer, mutation))
        end_message(writer, NULL);
    if (writer->wire.size == 0 && !is_first(&writer->place) && change_writer_is_full(writer))
        return false;
    if (writer->wire.size == 0)
        begin_message(writer, record, mutation);
    return true;
}

/* The piece that the log has of the value at the present offset. */
static status get_piece(struct change_writer *writer, const struct stream_record *record,
                        const struct list_mutation *mutation, bytes *out)
{
    const struct change_place *place = &writer->place;
    uint32_t number = place->pieces + (uint32_t)(place->offset / STREAM_PIECE_BYTES) + 1;
    size_t left = mutation->size - place->offset / STREAM_PIECE_BYTES * STREAM_PIECE_BYTES;
    if (writer->piece_number != number) {
        buffer_clear(&writer->piece);
        writer->piece_number = number;
        TRY(table_stream_read_piece(writer->table, writer->shard, record, number, &writer->piece));
    }
    *out = buffer_bytes(&writer->piece);
    if (writer->piece.failed)
        return status_out_of_memory();
    return out->size == (left < STREAM_PIECE_BYTES ? left : STREAM_PIECE_BYTES) ? status_ok()
                                                                                : damaged();
}

/* What goes out next of the value. */
static status next_slice(struct change_writer *writer, const struct stream_record *record,
                         const struct list_mutation *mutation, bytes *out)
{
    size_t at = writer->place.offset;
    bytes from = mutation->value;
    if (mutation->is_apart) {
        TRY(get_piece(writer, record, mutation, &from));
        at %= STREAM_PIECE_BYTES;
    }
    size_t left = from.size - at;
    *out = bytes_make(from.data + at, left < WRITER_SLICE_BYTES ? left : WRITER_SLICE_BYTES);
    return status_ok();
}

static status add_slice(struct change_writer *writer, const struct stream_record *record,
                        const struct list_mutation *mutation)
{
    bytes slice;
    TRY(next_slice(writer, record, mutation, &slice));
    change_message_add_piece(&writer->message, mutation, value_size(mutation), writer->place.offset,
                             slice);
    writer->has_slice = true;
    writer->place.offset += slice.size;
    return status_ok();
}

static void pass_mutation(struct change_place *place, const struct list_mutation *mutation)
{
    if (mutation->is_apart)
        place->pieces += stream_piece_count(mutation->size);
    place->mutation++;
    place->offset = 0;
}

/* False: no more is to be sent now. */
static status write_mutation(struct change_writer *writer, const struct stream_record *record,
                             const struct list_mutation *mutation, bool *goes_on)
{
    struct change_place *place = &writer->place;
    if (mutation->kind == LIST_DELETE_ROW)
        return damaged(); /* which families that are is found out before it is stored */
    do {
        *goes_on = make_room(writer, record, mutation);
        if (!*goes_on)
            return status_ok();
        if (is_cut(mutation))
            TRY(add_slice(writer, record, mutation));
        else
            change_message_add(&writer->message, mutation);
        if (writer->wire.failed)
            return status_out_of_memory();
    } while (is_cut(mutation) && place->offset < value_size(mutation));
    pass_mutation(place, mutation);
    return status_ok();
}

static void skip_written(struct list_reader *reader, size_t count)
{
    struct list_mutation mutation;
    while (count > 0 && list_reader_next(reader, &mutation))
        count--;
}

static status write_mutations(struct change_writer *writer, const struct stream_record *record,
                              bool *goes_on)
{
    struct list_reader reader;
    struct list_mutation mutation;
    *goes_on = true;
    list_reader_start(&reader, record->list);
    skip_written(&reader, writer->place.mutation);
    while (*goes_on && list_reader_next(&reader, &mutation))
        TRY(write_mutation(writer, record, &mutation, goes_on));
    return reader.is_bad ? damaged() : status_ok();
}

status change_writer_write(struct change_writer *writer, const struct stream_record *record,
                           const struct change_end *end)
{
    bool goes_on;
    if (!writer->place.is_inside)
        writer->place = (struct change_place){.is_inside = true, .position = record->position};
    status s = write_mutations(writer, record, &goes_on);
    if (!status_is_ok(s)) {
        change_writer_rest(writer);
        return s;
    }
    if (!goes_on)
        return status_ok();
    writer->place = (struct change_place){.is_inside = false};
    writer->piece_number = 0;
    if (writer->wire.size > 0)
        end_message(writer, end);
    return status_ok();
}
