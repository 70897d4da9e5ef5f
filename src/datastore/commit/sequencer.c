/* See sequencer.h. */
#include "datastore/commit/sequencer.h"

#include "base/check.h"

static struct ds_turn *moment_of(struct link *link)
{
    return LIST_ENTRY(link, struct ds_turn, link);
}

/* The last of the moments that are drawn; there is one. */
static const struct ds_turn *last_of(const struct ds_sequencer *sequencer)
{
    return moment_of((struct link *)(void *)sequencer->drawn.last); /* where its `next` is */
}

void ds_sequencer_init(struct ds_sequencer *sequencer)
{
    *sequencer = (struct ds_sequencer){.last_us = 0};
    pthread_mutex_init(&sequencer->lock, NULL);
    pthread_cond_init(&sequencer->passed, NULL);
}

void ds_sequencer_free(struct ds_sequencer *sequencer)
{
    CHECK(list_is_empty(&sequencer->drawn));
    pthread_cond_destroy(&sequencer->passed);
    pthread_mutex_destroy(&sequencer->lock);
}

void ds_sequencer_draw(struct ds_sequencer *sequencer, int64_t now_us, struct ds_turn *turn)
{
    pthread_mutex_lock(&sequencer->lock);
    sequencer->last_us = now_us > sequencer->last_us ? now_us : sequencer->last_us + 1;
    *turn = (struct ds_turn){.at_us = sequencer->last_us};
    DCHECK(list_is_empty(&sequencer->drawn) || last_of(sequencer)->at_us < sequencer->last_us);
    list_append(&sequencer->drawn, &turn->link);
    if (sequencer->next == NULL)
        sequencer->next = &turn->link;
    pthread_mutex_unlock(&sequencer->lock);
}

/* --- on towards the past: with the lock held --- */

/* Enters all whose turn it is, in their order. The lock is let go for each of them. */
static void enter(struct ds_sequencer *sequencer)
{
    DCHECK(check_is_held(&sequencer->lock));
    while (!sequencer->is_entering && sequencer->next != NULL &&
           moment_of(sequencer->next)->is_ready) {
        struct ds_turn *turn = moment_of(sequencer->next);
        DCHECK(!turn->has_entered);
        if (!turn->is_done) {
            sequencer->is_entering = true;
            pthread_mutex_unlock(&sequencer->lock);
            turn->enter(turn);
            pthread_mutex_lock(&sequencer->lock);
            sequencer->is_entering = false;
        }
        turn->has_entered = true;
        sequencer->next = turn->link.next;
    }
}

/* Takes those that are past now off the list. The result is of those whose owners are to be called.
 */
static struct list pass(struct ds_sequencer *sequencer)
{
    DCHECK(check_is_held(&sequencer->lock));
    struct list to_call = {0};
    while (!list_is_empty(&sequencer->drawn)) {
        struct ds_turn *first = moment_of(sequencer->drawn.first);
        if (!first->has_entered || !first->is_done)
            break;
        list_take(&sequencer->drawn);
        first->is_past = true;
        if (first->past != NULL)
            list_append(&to_call, &first->link);
        pthread_cond_broadcast(&sequencer->passed);
    }
    return to_call;
}

static void unlock_and_call(struct ds_sequencer *sequencer, struct list to_call)
{
    pthread_mutex_unlock(&sequencer->lock);
    while (!list_is_empty(&to_call)) {
        struct ds_turn *turn = moment_of(list_take(&to_call));
        turn->past(turn);
    }
}

/* --- what becomes of a moment --- */

void ds_sequencer_ready(struct ds_sequencer *sequencer, struct ds_turn *turn)
{
    pthread_mutex_lock(&sequencer->lock);
    DCHECK(!turn->is_ready && !turn->is_past);
    turn->is_ready = true;
    enter(sequencer);
    unlock_and_call(sequencer, pass(sequencer));
}

void ds_sequencer_give_up(struct ds_sequencer *sequencer, struct ds_turn *turn)
{
    pthread_mutex_lock(&sequencer->lock);
    DCHECK(!turn->is_ready && !turn->has_entered);
    turn->is_ready = turn->is_done = true;
    enter(sequencer);
    unlock_and_call(sequencer, pass(sequencer));
}

void ds_sequencer_applied(struct ds_sequencer *sequencer, struct ds_turn *turn)
{
    pthread_mutex_lock(&sequencer->lock);
    DCHECK(turn->has_entered || sequencer->is_entering);
    turn->is_done = true;
    unlock_and_call(sequencer, pass(sequencer));
}

void ds_sequencer_end(struct ds_sequencer *sequencer, struct ds_turn *turn)
{
    CHECK(turn->past == NULL);
    if (!turn->is_ready)
        ds_sequencer_give_up(sequencer, turn);
    pthread_mutex_lock(&sequencer->lock);
    while (!turn->is_past)
        pthread_cond_wait(&sequencer->passed, &sequencer->lock);
    pthread_mutex_unlock(&sequencer->lock);
}

/* --- for readers --- */

int64_t ds_sequencer_read_timestamp(struct ds_sequencer *sequencer, int64_t now_us)
{
    pthread_mutex_lock(&sequencer->lock);
    int64_t present_us;
    if (!list_is_empty(&sequencer->drawn)) {
        present_us = moment_of(sequencer->drawn.first)->at_us - 1;
    } else {
        if (now_us > sequencer->last_us)
            sequencer->last_us = now_us;
        present_us = sequencer->last_us;
    }
    pthread_mutex_unlock(&sequencer->lock);
    return present_us;
}

void ds_sequencer_wait_until(struct ds_sequencer *sequencer, int64_t at_us)
{
    pthread_mutex_lock(&sequencer->lock);
    if (at_us > sequencer->last_us)
        sequencer->last_us = at_us;
    while (!list_is_empty(&sequencer->drawn) && moment_of(sequencer->drawn.first)->at_us <= at_us)
        pthread_cond_wait(&sequencer->passed, &sequencer->lock);
    pthread_mutex_unlock(&sequencer->lock);
}

void ds_sequencer_wait_for_earlier(struct ds_sequencer *sequencer, const struct ds_turn *turn)
{
    pthread_mutex_lock(&sequencer->lock);
    while (sequencer->drawn.first != &turn->link)
        pthread_cond_wait(&sequencer->passed, &sequencer->lock);
    pthread_mutex_unlock(&sequencer->lock);
}
