/* Which clusters of instances are at a location. */
#ifndef TRESTLE_REPLICA_LOCATION_USE_H
#define TRESTLE_REPLICA_LOCATION_USE_H

#include "control/control.h"

/* FAILED_PRECONDITION, naming one, if an instance has a cluster at the zone, as us-east1-b. */
status location_check_unused(struct control *control, const char *location);

#endif
