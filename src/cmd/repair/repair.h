/* `trestle repair DIR`: says what of a stopped server's data directory can be repaired, and repairs
 * it if it is asked to. */
#ifndef TRESTLE_CMD_REPAIR_REPAIR_H
#define TRESTLE_CMD_REPAIR_REPAIR_H

/* `arguments`: those after "repair", ended by NULL. Returns the exit status: 0 all that is looked
 * at is well, now or all the time, 1 something is not, or cannot be read, 2 wrong usage. Writes
 * what it repairs to standard output, what is left to standard error. */
int repair_command(const char *const *arguments);

#endif
