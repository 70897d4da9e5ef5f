/* Tests of change assembly: the 16 answers that the state machine of Google's client in Java is
 * accepted by, what else a server might get wrong, large values, and memory that runs out.
 *
 * Messages and what they come to are told in short:
 *     U: G: c:   the message begins a change by a user, by collection; goes on with one
 *     F C S=v    DeleteFromFamily, DeleteFromColumn, SetCell to v
 *     P2/9=v     a piece of a SetCell of 9 bytes, from the third on; L2/9=v: the last
 *     !          the change is done
 *     H X        a heartbeat, a close
 * and {F S=v} is a whole change, E a failure. */
#include "client/change_assembly.h"

#include "base/testing/failmalloc.h"
#include "base/testing/testing.h"
#include "wire/proto.h"

#include <stdio.h>

enum { CHUNKS_MOST = 8, MESSAGES_MOST = 8 };

typedef Bt__ReadChangeStreamResponse__MutationChunk mutation_chunk;

/* A message while it is made. */
struct draft {
    Bt__ReadChangeStreamResponse response;
    Bt__ReadChangeStreamResponse__DataChange data;
    Bt__ReadChangeStreamResponse__Heartbeat heartbeat;
    Bt__ReadChangeStreamResponse__CloseStream close;
    Bt__StreamContinuationToken token;
    Pb__Timestamp time;
    mutation_chunk chunks[CHUNKS_MOST];
    mutation_chunk *chunk_pointers[CHUNKS_MOST];
    Bt__ReadChangeStreamResponse__MutationChunk__ChunkInfo infos[CHUNKS_MOST];
    Bt__Mutation mutations[CHUNKS_MOST];
    Bt__Mutation__SetCell set_cells[CHUNKS_MOST];
    Bt__Mutation__DeleteFromColumn columns[CHUNKS_MOST];
    Bt__Mutation__DeleteFromFamily families[CHUNKS_MOST];
    Bt__Mutation__DeleteFromRow row;
};

static void draft_init(struct draft *d)
{
    *d = (struct draft){.response = BT__READ_CHANGE_STREAM_RESPONSE__INIT,
                        .data = BT__READ_CHANGE_STREAM_RESPONSE__DATA_CHANGE__INIT,
                        .heartbeat = BT__READ_CHANGE_STREAM_RESPONSE__HEARTBEAT__INIT,
                        .close = BT__READ_CHANGE_STREAM_RESPONSE__CLOSE_STREAM__INIT,
                        .token = BT__STREAM_CONTINUATION_TOKEN__INIT,
                        .time = PB__TIMESTAMP__INIT,
                        .row = BT__MUTATION__DELETE_FROM_ROW__INIT};
    d->time.seconds = 1656633600;
    d->time.nanos = 1000;
    d->data.chunks = d->chunk_pointers;
    d->token.token = "token";
}

static Bt__Mutation *add_mutation(struct draft *d)
{
    size_t i = d->data.n_chunks++;
    assert_true(i < CHUNKS_MOST);
    d->chunks[i] = (mutation_chunk)BT__READ_CHANGE_STREAM_RESPONSE__MUTATION_CHUNK__INIT;
    d->mutations[i] = (Bt__Mutation)BT__MUTATION__INIT;
    d->chunks[i].mutation = &d->mutations[i];
    d->chunk_pointers[i] = &d->chunks[i];
    return &d->mutations[i];
}

static void add_cell(struct draft *d, bytes value)
{
    Bt__Mutation *mutation = add_mutation(d);
    Bt__Mutation__SetCell *cell = &d->set_cells[d->data.n_chunks - 1];
    *cell = (Bt__Mutation__SetCell)BT__MUTATION__SET_CELL__INIT;
    cell->family_name = "family";
    cell->column_qualifier = proto_data(bytes_of("q"));
    cell->timestamp_micros = 1000;
    cell->value = proto_data(value);
    mutation->mutation_case = BT__MUTATION__MUTATION_SET_CELL;
    mutation->set_cell = cell;
}

static void add_piece(struct draft *d, int offset, int size, bytes value, bool is_last)
{
    Bt__ReadChangeStreamResponse__MutationChunk__ChunkInfo *info = &d->infos[d->data.n_chunks];
    *info = (Bt__ReadChangeStreamResponse__MutationChunk__ChunkInfo)
        BT__READ_CHANGE_STREAM_RESPONSE__MUTATION_CHUNK__CHUNK_INFO__INIT;
    info->chunked_value_offset = offset;
    info->chunked_value_size = size;
    info->last_chunk = is_last;
    d->chunks[d->data.n_chunks].chunk_info = NULL;
    add_cell(d, value);
    d->chunks[d->data.n_chunks - 1].chunk_info = info;
}

static void add_family(struct draft *d)
{
    Bt__Mutation *mutation = add_mutation(d);
    Bt__Mutation__DeleteFromFamily *family = &d->families[d->data.n_chunks - 1];
    *family = (Bt__Mutation__DeleteFromFamily)BT__MUTATION__DELETE_FROM_FAMILY__INIT;
    family->family_name = "family";
    mutation->mutation_case = BT__MUTATION__MUTATION_DELETE_FROM_FAMILY;
    mutation->delete_from_family = family;
}

static void add_column(struct draft *d)
{
    Bt__Mutation *mutation = add_mutation(d);
    Bt__Mutation__DeleteFromColumn *column = &d->columns[d->data.n_chunks - 1];
    *column = (Bt__Mutation__DeleteFromColumn)BT__MUTATION__DELETE_FROM_COLUMN__INIT;
    column->family_name = "family";
    mutation->mutation_case = BT__MUTATION__MUTATION_DELETE_FROM_COLUMN;
    mutation->delete_from_column = column;
}

static void add_row_deletion(struct draft *d)
{
    Bt__Mutation *mutation = add_mutation(d);
    mutation->mutation_case = BT__MUTATION__MUTATION_DELETE_FROM_ROW;
    mutation->delete_from_row = &d->row;
}

/* One of the blank-separated words of a message. */
static void add_word(struct draft *d, const char *word)
{
    int offset, size, at;
    switch (*word) {
    case 'F':
        add_family(d);
        break;
    case 'C':
        add_column(d);
        break;
    case 'R':
        add_row_deletion(d);
        break;
    case 'S':
        add_cell(d, bytes_of(word + 2));
        break;
    case '!':
        d->data.done = true;
        d->data.token = "token";
        d->data.estimated_low_watermark = &d->time;
        break;
    default:
        assert_int_equal(sscanf(word + 1, "%d/%d=%n", &offset, &size, &at), 2);
        add_piece(d, offset, size, bytes_of(word + 1 + at), *word == 'L');
    }
}

static void begin_data(struct draft *d, char kind)
{
    d->response.stream_record_case = BT__READ_CHANGE_STREAM_RESPONSE__STREAM_RECORD_DATA_CHANGE;
    d->response.data_change = &d->data;
    d->data.type = BT__READ_CHANGE_STREAM_RESPONSE__DATA_CHANGE__TYPE__CONTINUATION;
    if (kind == 'c')
        return;
    d->data.type = kind == 'U'
                       ? BT__READ_CHANGE_STREAM_RESPONSE__DATA_CHANGE__TYPE__USER
                       : BT__READ_CHANGE_STREAM_RESPONSE__DATA_CHANGE__TYPE__GARBAGE_COLLECTION;
    d->data.source_cluster_id = kind == 'U' ? "cluster" : "";
    d->data.row_key = proto_data(bytes_of("row"));
    d->data.commit_timestamp = &d->time;
    d->data.tiebreaker = 100;
}

static void fill(struct draft *d, char *text)
{
    draft_init(d);
    if (*text == 'H') {
        d->response.stream_record_case = BT__READ_CHANGE_STREAM_RESPONSE__STREAM_RECORD_HEARTBEAT;
        d->response.heartbeat = &d->heartbeat;
        d->heartbeat.continuation_token = &d->token;
        d->heartbeat.estimated_low_watermark = &d->time;
    } else if (*text == 'X') {
        d->response.stream_record_case =
            BT__READ_CHANGE_STREAM_RESPONSE__STREAM_RECORD_CLOSE_STREAM;
        d->response.close_stream = &d->close;
    } else {
        char *rest;
        begin_data(d, *text);
        for (char *word = strtok_r(text + 2, " ", &rest); word != NULL;
             word = strtok_r(NULL, " ", &rest))
            add_word(d, word);
    }
}

/* --- what comes of it --- */

static void tell_change(const struct feed_change *change, struct buffer *out)
{
    assert_true(bytes_equal(change->row_key, bytes_of("row")));
    assert_int_equal(change->commit_us, INT64_C(1656633600000001));
    assert_int_equal(change->tiebreaker, 100);
    assert_string_equal(change->source_cluster, change->is_collection ? "" : "cluster");
    for (size_t i = 0; i < change->count; i++) {
        const Bt__Mutation *mutation = change->mutations[i];
        buffer_append_byte(out, i == 0 ? '{' : ' ');
        if (mutation->mutation_case == BT__MUTATION__MUTATION_DELETE_FROM_FAMILY)
            buffer_append_byte(out, 'F');
        else if (mutation->mutation_case == BT__MUTATION__MUTATION_DELETE_FROM_COLUMN)
            buffer_append_byte(out, 'C');
        else
            buffer_append_format(out, "S=%.*s", (int)mutation->set_cell->value.len,
                                 (const char *)mutation->set_cell->value.data);
    }
    buffer_append_byte(out, '}');
}

static void tell(const struct change_assembly *a, enum change_event event, struct buffer *out)
{
    if (event == CHANGE_WHOLE || event == CHANGE_HEARTBEAT) {
        assert_string_equal(a->token, "token");
        assert_int_equal(a->watermark_us, INT64_C(1656633600000001));
    }
    if (event == CHANGE_WHOLE)
        tell_change(&a->change, out);
    else if (event != CHANGE_PART)
        buffer_append_byte(out, event == CHANGE_HEARTBEAT ? 'H' : 'X');
}

static void encode_text(const char *text, struct buffer *wire)
{
    char words[128];
    struct draft d;
    snprintf(words, sizeof words, "%s", text);
    fill(&d, words);
    proto_encode(&d.response.base, wire);
    assert_false(wire->failed);
}

/* The bytes are gone before anybody looks at what came of them. */
static status take_text(struct change_assembly *a, const char *text, enum change_event *event)
{
    struct buffer wire = {0};
    encode_text(text, &wire);
    status s = change_assembly_take(a, buffer_bytes(&wire), event);
    buffer_free(&wire);
    return s;
}

static void tell_messages(struct change_assembly *a, const char *const *messages,
                          struct buffer *out)
{
    status s = status_ok();
    for (size_t i = 0; i < MESSAGES_MOST && messages[i] != NULL && status_is_ok(s); i++) {
        enum change_event event;
        s = take_text(a, messages[i], &event);
        if (status_is_ok(s))
            tell(a, event, out);
    }
    if (status_is_ok(s))
        s = change_assembly_end(a);
    if (!status_is_ok(s))
        buffer_append_byte(out, 'E');
    assert_true(status_is_ok(s) || s.code == STATUS_DATA_LOSS);
    status_free(s);
}

struct example {
    const char *name;
    const char *messages[MESSAGES_MOST];
    const char *comes_to;
};

static void check_example(const struct example *example)
{
    struct change_assembly a;
    struct buffer out = {0};
    assert_ok(change_assembly_init(&a));
    tell_messages(&a, example->messages, &out);
    if (!bytes_equal(buffer_bytes(&out), bytes_of(example->comes_to)))
        print_error("%s: %.*s\n", example->name, (int)out.size, (const char *)out.data);
    assert_true(bytes_equal(buffer_bytes(&out), bytes_of(example->comes_to)));
    buffer_free(&out);
    change_assembly_free(&a);
}

/* What changestream.json of java-bigtable has. */
static const struct example accepted[] = {
    {"a heartbeat", {"H"}, "H"},
    {"a close", {"X"}, "X"},
    {"a heartbeat and a close", {"H", "X"}, "HX"},
    {"a change in one message", {"U:F C S=v !"}, "{F C S=v}"},
    {"a change that is not done", {"U:F"}, "E"},
    {"a collection has no cluster", {"G:F !"}, "{F}"},
    {"a value in two pieces", {"U:P0/9=v", "c:L1/9=alue-VAL !"}, "{S=value-VAL}"},
    {"pieces of different sizes", {"U:P0/1=v", "c:L1/9=alue-VAL !"}, "E"},
    {"a value in three pieces",
     {"U:P0/13=v", "c:P1/13=alue-VAL", "c:L9/13=-VAL !"},
     "{S=value-VAL-VAL}"},
    {"two values in pieces",
     {"U:P0/9=v", "c:L1/9=alue-VAL P0/9=v", "c:L1/9=alue-VAL !"},
     "{S=value-VAL S=value-VAL}"},
    {"a value in pieces, then one that is whole",
     {"U:P0/9=v", "c:L1/9=alue-VAL S=value-VAL !"},
     "{S=value-VAL S=value-VAL}"},
    {"a whole value, then one in pieces",
     {"U:S=v P0/9=v", "c:L1/9=alue-VAL !"},
     "{S=v S=value-VAL}"},
    {"deletions on both sides of pieces",
     {"U:F P0/9=v", "c:L1/9=alue-VAL F !"},
     "{F S=value-VAL F}"},
    {"many mutations behind pieces", {"U:P0/9=v", "c:L1/9=alue-VAL C F !"}, "{S=value-VAL C F}"},
    {"mutations in several messages", {"U:F", "c:F C !"}, "{F F C}"},
    {"two changes in several messages, and a close",
     {"U:F", "c:F !", "U:F", "c:F !", "X"},
     "{F F}{F F}X"},
};

static void java_accepts_the_same(void **state)
{
    (void)state;
    assert_int_equal(sizeof accepted / sizeof *accepted, 16);
    for (size_t i = 0; i < sizeof accepted / sizeof *accepted; i++)
        check_example(&accepted[i]);
}

static const struct example refused[] = {
    {"a heartbeat within a change", {"U:F", "H"}, "E"},
    {"a close within a change", {"U:F", "X"}, "E"},
    {"a change within another", {"U:F", "U:F !"}, "E"},
    {"a continuation of nothing", {"c:F !"}, "E"},
    {"a change without mutations", {"U: !"}, "E"},
    {"a deletion of the row", {"U:R !"}, "E"},
    {"a change that is done within a value", {"U:P0/9=v !"}, "E"},
    {"a value whose start is missing", {"U:P1/9=v"}, "E"},
    {"a value of no bytes", {"U:L0/0= !"}, "E"},
    {"pieces with a gap", {"U:P0/9=v", "c:L2/9=lue-VAL !"}, "E"},
    {"pieces at other places", {"U:P0/9=v", "c:L2/9=alue-VAL !"}, "E"},
    {"a piece again", {"U:P0/9=v", "c:P0/9=v"}, "E"},
    {"pieces that are more than the value", {"U:P0/2=v", "c:L1/2=alue !"}, "E"},
    {"a first piece that is", {"U:P0/1=va"}, "E"},
    {"pieces that are less", {"U:P0/9=v", "c:L1/9=alu !"}, "E"},
    {"two pieces in a message", {"U:P0/9=v L1/9=alue-VAL !"}, "E"},
    {"something before the next piece", {"U:P0/9=v", "c:F L1/9=alue-VAL !"}, "E"},
    {"a message without chunks within a value", {"U:P0/9=v", "c:"}, "E"},
    {"a heartbeat within a value", {"U:P0/9=v", "H"}, "E"},
    {"a value of one piece is whole", {"U:L0/5=value !"}, "{S=value}"},
    {"the last message has but the end", {"U:F", "c:!"}, "{F}"},
};

static void rules_hold(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        check_example(&refused[i]);
}

static void what_a_break_cut_off_comes_again(void **state)
{
    struct change_assembly a;
    enum change_event event;
    struct buffer out = {0};
    (void)state;
    assert_ok(change_assembly_init(&a));
    assert_ok(take_text(&a, "U:P0/9=v", &event));
    assert_int_equal(event, CHANGE_PART);
    change_assembly_reset(&a);
    assert_ok(change_assembly_end(&a));
    assert_ok(take_text(&a, "U:F S=v !", &event));
    tell(&a, event, &out);
    assert_true(bytes_equal(buffer_bytes(&out), bytes_of("{F S=v}")));
    buffer_free(&out);
    change_assembly_free(&a);
}

/* --- large values --- */

enum { PIECE = 1 << 20, PIECES = 100 };

static void take_piece(struct change_assembly *a, const uint8_t *piece, int i)
{
    struct draft d;
    struct buffer wire = {0};
    enum change_event event;
    draft_init(&d);
    begin_data(&d, i == 0 ? 'U' : 'c');
    add_piece(&d, i * PIECE, PIECES * PIECE, bytes_make(piece, PIECE), i + 1 == PIECES);
    if (i + 1 == PIECES)
        add_word(&d, "!");
    proto_encode(&d.response.base, &wire);
    assert_false(wire.failed);
    assert_ok(change_assembly_take(a, buffer_bytes(&wire), &event));
    assert_int_equal(event, i + 1 == PIECES ? CHANGE_WHOLE : CHANGE_PART);
    buffer_free(&wire);
}

/* Its memory is that of the value and a few pieces. */
static void a_large_value_is_whole(void **state)
{
    struct change_assembly a;
    uint8_t *piece = calloc(1, PIECE);
    (void)state;
    assert_non_null(piece);
    assert_ok(change_assembly_init(&a));
    for (int i = 0; i < PIECES; i++) {
        piece[0] = (uint8_t)i;
        take_piece(&a, piece, i);
    }
    const ProtobufCBinaryData *value = &a.change.mutations[0]->set_cell->value;
    assert_int_equal(value->len, (size_t)PIECES * PIECE);
    for (size_t i = 0; i < PIECES; i++)
        assert_int_equal(value->data[i * PIECE], i);
    assert_true(arena_footprint(a.arena) + arena_footprint(a.piece) <
                (size_t)(PIECES + 20) * PIECE);
    change_assembly_free(&a);
    free(piece);
}

/* --- memory that runs out --- */

enum { TRIED = 4 };

static void try_all(void *context)
{
    const struct buffer *wires = context;
    struct change_assembly a;
    enum change_event event;
    status s = change_assembly_init(&a);
    if (!status_is_ok(s)) {
        assert_status(s, STATUS_RESOURCE_EXHAUSTED);
        return;
    }
    for (size_t i = 0; i < TRIED && status_is_ok(s); i++)
        s = change_assembly_take(&a, buffer_bytes(&wires[i]), &event);
    assert_true(status_is_ok(s) || s.code == STATUS_RESOURCE_EXHAUSTED);
    status_free(s);
    change_assembly_free(&a);
}

static void memory_may_run_out(void **state)
{
    static const char *const messages[TRIED] = {"U:F P0/9=v", "c:P1/9=alue", "c:L5/9=-VAL S=v !",
                                                "H"};
    struct buffer wires[TRIED] = {0};
    (void)state;
    for (size_t i = 0; i < TRIED; i++)
        encode_text(messages[i], &wires[i]);
    failmalloc_each(try_all, wires);
    for (size_t i = 0; i < TRIED; i++)
        buffer_free(&wires[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(java_accepts_the_same),
        cmocka_unit_test(rules_hold),
        cmocka_unit_test(what_a_break_cut_off_comes_again),
        cmocka_unit_test(a_large_value_is_whole),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
