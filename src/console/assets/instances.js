// All instances, of all projects, or of one by name for who may not see them all.
import * as api from "./api.js";
import { failure, h, link, note, notice, table } from "./dom.js";
import { dateText } from "./formats.js";
import { instanceUrl, placeOf, projectForm, state } from "./parts.js";

function row(instance) {
  const place = placeOf(instance.name);
  return [
    link(instanceUrl(place), place.instance),
    place.project,
    instance.displayName ?? "",
    (instance.type ?? "").toLowerCase(),
    state(instance.state),
    dateText(instance.createTime),
  ];
}

function listing(found) {
  if (found.length === 0) {
    return notice(
      "empty",
      "There is no instance yet",
      "On loopback an instance comes into being when a client first uses it. Elsewhere, and by " +
        "other names, CreateInstance makes one: with gcloud, a client library, or REST.",
    );
  }
  const columns = [
    { title: "Instance" },
    { title: "Project" },
    { title: "Name" },
    { title: "Type" },
    { title: "State" },
    { title: "Created (UTC)", class: "time" },
  ];
  return [table("Instances", columns, found.map(row), "stacked"), datastoreNote(found)];
}

function datastoreNote(found) {
  const projects = [...new Set(found.map((instance) => placeOf(instance.name).project))];
  const of = (project) =>
    link(
      `#/datastore?project=${encodeURIComponent(project)}`,
      projects.length === 1 ? `Datastore of project ${project}` : project,
    );
  return note(
    projects.length > 1 && "Datastore of projects ",
    projects.map((project, i) => [i > 0 && ", ", of(project)]),
  );
}

export async function instances(_place, parameters, signal) {
  const project = parameters.get("project") ?? "";
  const head = h("h1", null, "Instances", project && h("small", null, project));
  const path = `/v2/projects/${encodeURIComponent(project || "-")}/instances`;
  const form = () => projectForm("#/instances", project, "Show its instances");
  let shown;
  try {
    shown = [
      project && form(),
      listing((await api.get(path, { signal })).instances ?? []),
    ];
  } catch (error) {
    if (error.code !== 403) throw error;
    const words = project
      ? failure(error)
      : notice(
          "empty",
          "You may not list the instances of all projects",
          "Name the one that you work in.",
        );
    shown = [words, form()];
  }
  return { title: "Instances", content: [head, shown] };
}
