/* The ends of a batch's commits, on their way to their loops: see commit_private.h. */
#include "base/check.h"
#include "os/loop.h"
#include "tablet/commit_private.h"

void commit_posts_add(struct commit_posts *posts, struct commit *commit)
{
    DCHECK(commit->loop != NULL);
    size_t i = 0;
    while (i < posts->count && posts->loops[i].loop != commit->loop)
        i++;
    if (i == COMMIT_LOOPS_AT_ONCE) {
        loop_post(commit->loop, &commit->done);
        return;
    }
    if (i == posts->count) {
        posts->loops[i].loop = commit->loop;
        posts->loops[i].tasks = (struct list){0};
        posts->count++;
    }
    list_append(&posts->loops[i].tasks, &commit->done.link);
}

void commit_posts_send(struct commit_posts *posts)
{
    for (size_t i = 0; i < posts->count; i++)
        loop_post_list(posts->loops[i].loop, &posts->loops[i].tasks);
}
