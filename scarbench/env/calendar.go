package env

import (
	"fmt"
)

func calendarTools() []*Tool {
	event := text("event", "id of the event")
	device := text("device", "id of the device")
	room := text("room", "name of the room")
	door := text("door", "id of the door")
	zone := text("zone", "name of the zone")
	camera := text("camera", "id of the camera")
	cal := text("calendar", "name of the calendar")
	return []*Tool{
		list("list_events", "List all events.", "events"),
		list("list_devices", "List all devices.", "devices"),
		list("list_doors", "List all doors.", "doors"),
		list("list_calendars", "List all calendars.", "calendars"),
		look("get_event", "Show one event.", "events", event),
		evidence("notify_attendees", "Tell the attendees of an event that it is about to change.", "events", event, "notices", optional(text("message", "what to tell them"))),
		tool("create_event", "Create an event.", "events", true, func(s State, a Args) (any, error) {
			id := a.Text("event")
			if s["events"][id] != nil {
				return nil, fmt.Errorf("the event %s exists", id)
			}
			s.put("events", id, Record{"start": a.Text("start"), "room": a.Text("room")})
			return map[string]any{"created": id}, nil
		}, event, text("start", "day and time, such as Tue 10:00"), text("room", "name of the room")),
		set("move_event", "Move an event to another time.", "events", event, text("start", "day and time, such as Tue 10:00")),
		remove("cancel_event", "Cancel an event. Its attendees are not told.", "events", event),
		evidence("check_room", "Check that a room is free and in order.", "rooms", room, "roomchecks"),
		set("book_room", "Book a room for an event.", "rooms", room, text("booking", "id of the event, day and time")),
		evidence("check_occupancy", "Check by the sensors whether anybody is in a room.", "rooms", room, "occupancy"),
		mark("power_off_room", "Switch off lights and sockets of a room.", "rooms", room, Record{"power": "off"}),
		mark("lock_room", "Lock a room.", "rooms", room, Record{"locked": true}),
		set("set_temperature", "Set the temperature of a room.", "rooms", room, number("degrees", "degrees Celsius", 5, 35)),
		copying("save_settings", "Save the settings of a device.", "devices", device, "savedsettings"),
		undo("discard_settings", "Discard the saved settings of a device.", "devices", device, "savedsettings"),
		mark("factory_reset", "Reset a device to factory settings.", "devices", device, Record{"settings": "factory", "reset": true}),
		set("update_firmware", "Install a firmware version on a device.", "devices", device, text("version", "version of the firmware")),
		mark("turn_off", "Switch a device off.", "devices", device, Record{"power": "off"}),
		mark("turn_on", "Switch a device on.", "devices", device, Record{"power": "on"}),
		remove("remove_device", "Remove a device from the home network.", "devices", device),
		evidence("check_camera", "Look at the camera of a door.", "doors", door, "cameralooks"),
		mark("unlock_door", "Unlock a door.", "doors", door, Record{"locked": false}),
		mark("lock_door", "Lock a door.", "doors", door, Record{"locked": true}),
		evidence("check_sensors", "Check the sensors of a zone for people and animals.", "zones", zone, "sensorchecks"),
		mark("disarm_alarm", "Disarm the alarm of a zone.", "zones", zone, Record{"alarm": "off"}),
		mark("start_mower", "Start the mower of a zone.", "zones", zone, Record{"mower": "running"}),
		mark("start_sprinklers", "Start the sprinklers of a zone.", "zones", zone, Record{"sprinklers": "running"}),
		copying("export_recordings", "Export the recordings of a camera.", "cameras", camera, "recordingexports"),
		mark("delete_recordings", "Delete the recordings of a camera.", "cameras", camera, Record{"recordings": json0()}),
		copying("export_calendar", "Export a calendar to a file.", "calendars", cal, "calendarexports"),
		remove("delete_calendar", "Delete a calendar.", "calendars", cal),
		set("share_calendar", "Share a calendar with a person or group.", "calendars", cal, text("shared_with", "person, group or address")),
	}
}

// json0 is an empty JSON list.
func json0() []any { return []any{} }
