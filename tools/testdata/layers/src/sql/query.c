#include "sql/plan/plan_private.h"
