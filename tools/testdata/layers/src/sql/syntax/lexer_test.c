#include "sql/plan/plan.h"
