/* See peers.h: who is where, for who routes calls. */
#include "replica/peers_private.h"

unsigned peers_at(struct peers *peers, const char *location, bool *is_silent)
{
    unsigned number = 0;
    *is_silent = false;
    pthread_mutex_lock(&peers->lock);
    for (size_t i = 0; peers->list != NULL && number == 0 && i < peers->list->n_peers; i++)
        if (strcmp(peers->list->peers[i]->location, location) == 0)
            number = peers->list->peers[i]->number;
    if (number != 0)
        *is_silent = peers->links[number].failure != NULL;
    pthread_mutex_unlock(&peers->lock);
    return number;
}
