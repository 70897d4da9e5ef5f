/* See cluster_settings.h. */
#include "bigtable/cluster_settings.h"

#include "bigtable/names.h"

/* google.bigtable.admin.v2.AutoscalingTargets: of one node, in GiB. */
static const struct {
    int32_t least, most;
} storage_targets[] = {
    [BT_ADMIN__STORAGE_TYPE__SSD] = {2560, 5120},
    [BT_ADMIN__STORAGE_TYPE__HDD] = {8192, 16384},
};

enum { LEAST_CPU_PERCENT = 10, MOST_CPU_PERCENT = 80 };

static status invalid(const char *what)
{
    return status_make(STATUS_INVALID_ARGUMENT, "%s", what);
}

static status complete_targets(BtAdmin__AutoscalingTargets *targets, BtAdmin__StorageType storage)
{
    int32_t least = storage_targets[storage].least, most = storage_targets[storage].most;
    if (targets->cpu_utilization_percent < LEAST_CPU_PERCENT ||
        targets->cpu_utilization_percent > MOST_CPU_PERCENT)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "cpu_utilization_percent must be between %d and %d", LEAST_CPU_PERCENT,
                           MOST_CPU_PERCENT);
    if (targets->storage_utilization_gib_per_node == 0)
        targets->storage_utilization_gib_per_node = least;
    if (targets->storage_utilization_gib_per_node < least ||
        targets->storage_utilization_gib_per_node > most)
        return status_make(STATUS_INVALID_ARGUMENT,
                           "storage_utilization_gib_per_node must be between %d and %d", least,
                           most);
    return status_ok();
}

static status complete_autoscaling(BtAdmin__Cluster__ClusterAutoscalingConfig *config,
                                   BtAdmin__Cluster *cluster)
{
    const BtAdmin__AutoscalingLimits *limits = config->autoscaling_limits;
    if (limits == NULL || config->autoscaling_targets == NULL)
        return invalid("autoscaling_limits and autoscaling_targets must both be set");
    if (limits->min_serve_nodes <= 0)
        return invalid("min_serve_nodes must be greater than 0");
    if (limits->max_serve_nodes < limits->min_serve_nodes)
        return invalid("max_serve_nodes must not be less than min_serve_nodes");
    return complete_targets(config->autoscaling_targets, cluster->default_storage_type);
}

static BtAdmin__Cluster__ClusterAutoscalingConfig *autoscaling_of(BtAdmin__Cluster *cluster)
{
    if (cluster->config_case != BT_ADMIN__CLUSTER__CONFIG_CLUSTER_CONFIG)
        return NULL;
    return cluster->cluster_config->cluster_autoscaling_config;
}

static bool scales_by_two(const BtAdmin__Cluster *cluster)
{
    return cluster->node_scaling_factor ==
           BT_ADMIN__CLUSTER__NODE_SCALING_FACTOR__NODE_SCALING_FACTOR_2X;
}

static status check_scaling_factor(BtAdmin__Cluster *cluster)
{
    const BtAdmin__Cluster__ClusterAutoscalingConfig *config = autoscaling_of(cluster);
    if (!scales_by_two(cluster))
        return status_ok();
    bool is_even = cluster->serve_nodes % 2 == 0;
    if (config != NULL)
        is_even = config->autoscaling_limits->min_serve_nodes % 2 == 0 &&
                  config->autoscaling_limits->max_serve_nodes % 2 == 0;
    if (is_even)
        return status_ok();
    return invalid("With NODE_SCALING_FACTOR_2X numbers of nodes must be even");
}

/* An autoscaling configuration without limits and targets is how clients switch it off. */
static void drop_empty_config(BtAdmin__Cluster *cluster)
{
    const BtAdmin__Cluster__ClusterAutoscalingConfig *config = autoscaling_of(cluster);
    bool is_empty = config == NULL ||
                    (config->autoscaling_limits == NULL && config->autoscaling_targets == NULL);
    if (is_empty)
        cluster->config_case = BT_ADMIN__CLUSTER__CONFIG__NOT_SET;
}

/* Autoscaling leaves the number as it is: production's would move it later, if ever. */
status complete_cluster_size(BtAdmin__Cluster *cluster)
{
    drop_empty_config(cluster);
    BtAdmin__Cluster__ClusterAutoscalingConfig *config = autoscaling_of(cluster);
    if (config != NULL)
        TRY(complete_autoscaling(config, cluster));
    if (config != NULL && cluster->serve_nodes == 0)
        cluster->serve_nodes = config->autoscaling_limits->min_serve_nodes;
    if (cluster->serve_nodes <= 0)
        return invalid("serve_nodes must be greater than 0, or autoscaling configured");
    return check_scaling_factor(cluster);
}

bool cluster_autoscales(const BtAdmin__Cluster *cluster)
{
    return cluster->config_case == BT_ADMIN__CLUSTER__CONFIG_CLUSTER_CONFIG;
}

/* The number of a new cluster. There is one machine, so what production would choose by itself, or
 * its autoscaling would, is the fewest that may be. */
static void choose_size(BtAdmin__Cluster *cluster)
{
    const BtAdmin__Cluster__ClusterAutoscalingConfig *config = autoscaling_of(cluster);
    const BtAdmin__AutoscalingLimits *limits = config == NULL ? NULL : config->autoscaling_limits;
    if (limits == NULL && cluster->serve_nodes == 0)
        cluster->serve_nodes = scales_by_two(cluster) ? 2 : 1;
    if (limits != NULL && cluster->serve_nodes < limits->min_serve_nodes)
        cluster->serve_nodes = limits->min_serve_nodes;
    if (limits != NULL && cluster->serve_nodes > limits->max_serve_nodes)
        cluster->serve_nodes = limits->max_serve_nodes;
}

/* A scaling factor that is not given stays so: production shows none. */
static status complete_enums(BtAdmin__Cluster *cluster)
{
    if (cluster->default_storage_type == BT_ADMIN__STORAGE_TYPE__STORAGE_TYPE_UNSPECIFIED)
        cluster->default_storage_type = BT_ADMIN__STORAGE_TYPE__SSD;
    if (cluster->default_storage_type < BT_ADMIN__STORAGE_TYPE__SSD ||
        cluster->default_storage_type > BT_ADMIN__STORAGE_TYPE__HDD)
        return invalid("default_storage_type is unknown");
    if (cluster->node_scaling_factor < 0 ||
        cluster->node_scaling_factor >
            BT_ADMIN__CLUSTER__NODE_SCALING_FACTOR__NODE_SCALING_FACTOR_2X)
        return invalid("node_scaling_factor is unknown");
    return status_ok();
}

status complete_cluster(BtAdmin__Cluster *cluster)
{
    TRY(name_check_form("location", cluster->location, "projects/{project}/locations/{zone}"));
    if (cluster->encryption_config != NULL && *cluster->encryption_config->kms_key_name != '\0')
        TRY(name_check_form("kms_key_name", cluster->encryption_config->kms_key_name,
                            "projects/{project}/locations/{location}/keyRings/{keyring}/"
                            "cryptoKeys/{key}"));
    TRY(complete_enums(cluster));
    cluster->state = BT_ADMIN__CLUSTER__STATE__READY;
    choose_size(cluster);
    return complete_cluster_size(cluster);
}
