/* What the files of the engine share: views.c (which views there are), open.c (of a resource what
 * is needed to keep it), worker.c (the threads), look.c (what others are told).
 *
 *     resource ──watcher──► entry ──a thread opens it──► line of its source ──turn by turn──► gone
 *
 * Invariants
 *  1. `lock` guards all that is not said to be a worker's. Nothing that blocks is called with it,
 * and nothing of the control plane or of feeds.
 *  2. An entry that is being opened, and a line that has its turn, have one thread. What is said to
 *     be the worker's is that thread's.
 *  3. An entry of a deleted view is found by nobody; it is freed by the thread that has its line,
 * or opens it. */
#ifndef TRESTLE_VIEWS_VIEWS_PRIVATE_H
#define TRESTLE_VIEWS_VIEWS_PRIVATE_H

#include "base/vector.h"
#include "views/pace.h"
#include "views/upkeep.h"
#include "views/views.h"

#include <pthread.h>

enum { VIEW_THREADS = 2, VIEW_WORDS_SIZE = 256 };

struct view_line;

struct view_entry {
    char *name;
    char *query;
    struct view_line *line;      /* NULL: it is not open */
    struct view_entry *of_line;  /* the next of its line */
    struct view_entry *unopened; /* the next that is not open */
    bool is_being_opened;
    bool is_deleted;
    atomic_bool gives_up;
    bool has_failed; /* a person must do something */
    char words[VIEW_WORDS_SIZE];
    unsigned failures; /* in a row */
    int64_t retry_us;  /* not before, by the steady clock */
    uint64_t system_errors;
    int64_t cpu_us;
    struct table *table; /* held; set once */
    char *source_name;   /* set once */
    struct arena *arena; /* of the program; the worker's, as the rest */
    struct view_upkeep upkeep;
};

/* A source and its views: whoever has its turn does a piece for each. */
struct view_line {
    struct view_line *next;
    struct views *views;
    struct table *source; /* held */
    struct view_entry *entries;
    struct view_feed_waiter waiter;
    bool is_waiting; /* in the source's line of waiters */
    bool has_turn;
    int64_t due_us;              /* the steady clock; INT64_MAX: nothing is known to be done */
    struct view_changes changes; /* the worker's */
    struct arena *arena;         /* the same: of pieces; NULL: there is nothing to do */
    struct view_commit_memory *commit_memory; /* the same */
};

struct view_thread {
    struct views *views;
    pthread_t thread;
    struct view_pace pace;
};

struct views {
    struct views_options options;
    struct control_watcher watcher;
    pthread_mutex_t lock;
    pthread_cond_t wake;         /* there is something to do, or to end */
    pthread_cond_t changed;      /* of a view: for who waits for it */
    struct view_entry **entries; /* by name: those that can be found */
    size_t count;
    size_t capacity;
    struct view_entry *unopened;
    struct view_line *lines;
    bool is_held;
    bool is_stopping;
    bool has_missed; /* without memory: a resource of which nothing is known here */
    struct view_thread threads[VIEW_THREADS];
    unsigned started;
};

/* --- views.c --- */

/* With the lock held. NULL: there is none. */
struct view_entry *views_entry(const struct views *views, const char *name);
int64_t views_steady_us(const struct views *views);
/* With the lock held. */
enum view_state view_entry_state(const struct view_entry *entry);
void view_entry_free(struct view_entry *entry);
/* With the lock held: what became of a round, or of opening it. Takes the status. */
void view_entry_note(struct views *views, struct view_entry *entry, status s);

/* --- open.c --- */

/* What can be said of it before: its table, if there is one, and whether it was READY. So a view
 * can be read from the start on. May read from the disk. */
void view_entry_foresee(struct views *views, struct view_entry *entry);
/* All that a worker needs of it; its line is still to be found. Blocks. */
status view_entry_open(struct views *views, struct view_entry *entry);
/* The view was made by another program, or is damaged: its table is made anew, empty. Blocks. */
status view_entry_remake(struct views *views, struct view_entry *entry);
/* Gives back what opening took. */
void view_entry_close(struct view_entry *entry);

/* --- worker.c --- */

status views_start_threads(struct views *views);
void views_stop_threads(struct views *views);
/* On this thread, until nothing is due that is not put off. For tests. */
void views_work(struct views *views, struct view_pace *pace);
/* With the lock held: each line is to be looked at now, and nothing is put off any more. */
void views_hurry(struct views *views);

#endif
