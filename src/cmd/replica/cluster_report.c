/* See cluster_report.h. */
#include "cmd/replica/cluster_report.h"

#include "cmd/text_table.h"

#include <stdio.h>

enum { CELL = 48 };

/* NULL: of the server itself, or not told. */
static const Replica__PeerState *state_of(const Replica__ListPeersResponse *peers, uint32_t number)
{
    for (size_t i = 0; i < peers->n_states; i++)
        if (peers->states[i]->number == number)
            return peers->states[i];
    return NULL;
}

/* "0.204 s"; a length of time that is not negative. */
static void format_time(int64_t us, char text[CELL])
{
    int64_t shown_us = us < 0 ? 0 : us;
    snprintf(text, CELL, "%.3f s", (double)shown_us / 1e6);
}

/* "1.5 MB". */
static void format_bytes(uint64_t bytes, char text[CELL])
{
    static const char *const units[] = {"kB", "MB", "GB", "TB"};
    enum { STEP = 1000, LAST = sizeof units / sizeof *units - 1 };
    double value = (double)bytes / STEP;
    size_t unit = 0;
    for (; value >= STEP && unit < LAST; unit++)
        value /= STEP;
    if (bytes < STEP)
        snprintf(text, CELL, "%u B", (unsigned)bytes);
    else
        snprintf(text, CELL, "%.1f %s", value, units[unit]);
}

static void add_text(struct text_table *table, const char *text)
{
    text_table_add(table, bytes_of(text));
}

static void add_state(struct text_table *table, const Replica__ListPeersResponse *peers,
                      const Replica__PeerState *state)
{
    char text[CELL + 16], time[CELL];
    if (state == NULL) {
        add_text(table, "itself");
    } else if (state->failure[0] == '\0' && state->heard_us != 0) {
        add_text(table, state->parked[0] == '\0' ? "answers" : state->parked);
    } else if (state->heard_us == 0) {
        add_text(table, "not heard yet");
    } else {
        format_time(peers->now_us - state->heard_us, time);
        snprintf(text, sizeof text, "silent for %s", time);
        add_text(table, text);
    }
}

/* How far behind what is here is; of the server itself, or if it is not known, nothing. */
static void add_lag(struct text_table *table, const Replica__ListPeersResponse *peers,
                    const Replica__PeerState *state)
{
    char text[CELL] = "-";
    if (state != NULL && state->applied_until_us != 0)
        format_time(peers->now_us - state->applied_until_us, text);
    add_text(table, text);
}

/* What it has not been sent yet. */
static void add_queue(struct text_table *table, const Replica__PeerState *state)
{
    char text[CELL] = "-";
    if (state != NULL)
        format_bytes(state->queue_bytes, text);
    add_text(table, text);
}

static void add_clock(struct text_table *table, const Replica__PeerState *state)
{
    char text[CELL] = "-";
    if (state != NULL && state->heard_us != 0)
        snprintf(text, sizeof text, "%+.3f s", (double)state->clock_ahead_us / 1e6);
    add_text(table, text);
}

static void add_peer(struct text_table *table, const Replica__ListPeersResponse *peers,
                     const Replica__Peer *peer)
{
    char number[CELL];
    const Replica__PeerState *state = state_of(peers, peer->number);
    snprintf(number, sizeof number, "%u", peer->number);
    add_text(table, number);
    add_text(table, peer->location);
    add_text(table, peer->address);
    add_text(table, peer->number == peers->list->leader ? "leads" : "");
    add_state(table, peers, state);
    add_lag(table, peers, state);
    add_queue(table, state);
    add_clock(table, state);
}

/* Those who have left; and whether the server itself has. */
static void write_former(const Replica__ListPeersResponse *peers, struct buffer *out)
{
    for (size_t i = 0; i < peers->list->n_former; i++)
        buffer_append_format(out, "%u, in %s, has left\n", peers->list->former[i]->number,
                             peers->list->former[i]->location);
    if (peers->has_left)
        buffer_append_bytes(out,
                            bytes_of("this server was removed from these, and serves no data\n"));
}

static void write_failures(const Replica__ListPeersResponse *peers, struct buffer *out)
{
    for (size_t i = 0; i < peers->n_states; i++)
        if (peers->states[i]->failure[0] != '\0')
            buffer_append_format(out, "%u does not answer: %s\n", peers->states[i]->number,
                                 peers->states[i]->failure);
    for (size_t i = 0; i < peers->n_states; i++)
        if (peers->states[i]->doubled)
            buffer_append_format(out, "%u: two servers have its identity\n",
                                 peers->states[i]->number);
}

/* How much of an instance has come whose rows are being copied here. */
static void write_copied(const Replica__PlacedInstance *copied, struct buffer *out)
{
    char size[CELL], whole[CELL];
    uint64_t bytes = 0, all = 0;
    for (size_t i = 0; i < copied->n_tables; i++) {
        bytes += (uint64_t)copied->tables[i]->copied_bytes;
        all += (uint64_t)copied->tables[i]->size_bytes;
    }
    format_bytes(bytes, size);
    format_bytes(all, whole);
    buffer_append_format(out, "copies %s: %s of about %s\n", copied->name, size, whole);
}

void cluster_write_peers(const Replica__ListPeersResponse *peers, struct buffer *out)
{
    struct text_column columns[] = {
        {.name = "number", .to_the_right = true},
        {.name = "location"},
        {.name = "address"},
        {.name = "leads"},
        {.name = "state"},
        {.name = "lag", .to_the_right = true},
        {.name = "not sent", .to_the_right = true},
        {.name = "clock", .to_the_right = true},
    };
    struct text_table table;
    text_table_begin(&table, columns, sizeof columns / sizeof *columns, true, out);
    for (size_t i = 0; i < peers->list->n_peers; i++)
        add_peer(&table, peers, peers->list->peers[i]);
    text_table_end(&table);
    write_failures(peers, out);
    if (peers->copied != NULL)
        write_copied(peers->copied, out);
    write_former(peers, out);
}

void cluster_write_text(const Replica__ListPeersResponse *peers, const char *address,
                        struct buffer *out)
{
    if (peers->list == NULL)
        buffer_append_format(out, "%s has no peers\n", address);
    else
        cluster_write_peers(peers, out);
}

void cluster_tell_change(const Replica__ChangePeersResponse *change, const char *address,
                         struct buffer *out)
{
    if (change->peers != NULL)
        cluster_write_text(change->peers, address, out);
    for (size_t i = 0; i < change->n_notes; i++)
        buffer_append_format(out, "%s\n", change->notes[i]);
}
