/* `trestle doctor DIR`: reads a data directory from end to end and says whether it is whole. */
#ifndef TRESTLE_CMD_DOCTOR_H
#define TRESTLE_CMD_DOCTOR_H

/* Arguments as main's, argv[0] being "doctor". Returns the exit status: 0 whole, 1 damaged or
 * unreadable, 2 wrong usage. Writes what it read to standard output, damage to standard error. */
int doctor_main(int argc, char **argv);

#endif
