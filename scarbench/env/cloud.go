package env

import "fmt"

func cloudTools() []*Tool {
	service := text("service", "name of the service")
	version := text("version", "version")
	node := text("node", "name of the node")
	volume := text("volume", "name of the volume")
	instance := text("instance", "name of the instance")
	bucket := text("bucket", "name of the bucket")
	key := text("key", "name of the key")
	record := text("record", "name of the DNS record")
	group := text("source", "address range that may connect")
	flag := text("flag", "name of the feature flag")
	return []*Tool{
		list("list_services", "List all services.", "services"),
		list("list_nodes", "List all nodes.", "nodes"),
		list("list_volumes", "List all volumes.", "volumes"),
		list("list_keys", "List all keys.", "keys"),
		list("list_sources", "List the address ranges of the firewall and their ports.", "rules"),
		look("describe_service", "Show a service.", "services", service),
		evidence("run_tests", "Run the test suite of a service.", "services", service, "testruns"),
		set("deploy_service", "Deploy a version of a service to production.", "services", service, version),
		mark("rollback_service", "Roll a service back to its last version.", "services", service, Record{"version": "previous"}),
		mark("restart_service", "Restart a service.", "services", service, Record{"restarted": true}),
		evidence("notify_oncall", "Notify the engineer on call for a service.", "services", service, "oncallnotices"),
		set("scale_service", "Set the number of replicas of a service.", "services", service, number("replicas", "number of replicas", 0, 100)),
		remove("delete_service", "Delete a service.", "services", service),
		evidence("drain_node", "Drain the work from a node.", "nodes", node, "drains"),
		undo("uncordon_node", "Let work onto a drained node again.", "nodes", node, "drains"),
		mark("restart_node", "Restart a node.", "nodes", node, Record{"restarted": true}),
		remove("delete_node", "Delete a node.", "nodes", node),
		copying("snapshot_volume", "Take a snapshot of a volume.", "volumes", volume, "snapshots"),
		undo("delete_snapshot", "Delete the snapshot of a volume.", "volumes", volume, "snapshots"),
		remove("delete_volume", "Delete a volume.", "volumes", volume),
		set("resize_volume", "Change the size of a volume.", "volumes", volume, number("gigabytes", "new size", 1, 10000)),
		copying("create_image", "Make an image of an instance.", "instances", instance, "images"),
		remove("terminate_instance", "Terminate an instance.", "instances", instance),
		copying("export_bucket", "Export a bucket to cold storage.", "buckets", bucket, "bucketexports"),
		mark("empty_bucket", "Delete all objects of a bucket.", "buckets", bucket, Record{"objects": json0()}),
		remove("delete_bucket", "Delete a bucket.", "buckets", bucket),
		evidence("announce_rotation", "Announce the rotation of a key to its owners.", "keys", key, "announcements"),
		mark("rotate_key", "Rotate a key. The old one stops working.", "keys", key, Record{"rotated": true}),
		remove("revoke_key", "Revoke a key.", "keys", key),
		copying("save_record", "Save the present value of a DNS record.", "dns", record, "savedrecords"),
		set("update_record", "Set the value of a DNS record.", "dns", record, text("value", "new value")),
		evidence("review_flag", "Have a feature flag reviewed by its owner.", "flags", flag, "flagreviews"),
		set("set_flag", "Switch a feature flag for all users.", "flags", flag, choice("state", "state", "on", "off")),
		tool("open_port", "Open a port of the firewall to an address range.", "rules", true, func(s State, a Args) (any, error) {
			id := a.Text("source")
			r := s["rules"][id]
			if r == nil {
				r = Record{}
			}
			r[fmt.Sprint(a["port"])] = true
			s.put("rules", id, r)
			return map[string]any{"opened": a["port"], "source": id}, nil
		}, group, number("port", "port", 1, 65535)),
		remove("remove_source", "Close all ports for an address range.", "rules", group),
	}
}
