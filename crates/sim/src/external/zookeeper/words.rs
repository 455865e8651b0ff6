//! Four-letter words, and what a server says to them.
//!
//! Must not change anything.

use super::ensemble::Disk;
use super::server::Server;

/// What a server says that has no quorum.
const NOT_SERVING: &str = "This ZooKeeper instance is not currently serving requests\n";
/// Words that ZooKeeper has; those that the model answers are fewer.
const WORDS: [&str; 14] = [
    "conf", "cons", "crst", "dirs", "dump", "envi", "gtmk", "isro", "mntr", "ruok", "srst", "srvr",
    "stat", "wchs",
];

/// The answer to the first four bytes of a connection, if they are a word.
pub(super) fn answer(server: &Server, head: &[u8]) -> Option<String> {
    let word = std::str::from_utf8(head).ok().filter(|word| WORDS.contains(word))?;
    let settings = server.settings();
    let listed = settings.get("4lw.commands.whitelist").map_or("srvr", String::as_str);
    if !listed.split(',').any(|one| matches!(one.trim(), "*") || one.trim() == word) {
        return Some(format!("{word} is not executed because it is not in the whitelist.\n"));
    }
    let disk = server.ground.disk(&server.host).unwrap_or_default();
    Some(match word {
        "ruok" => "imok".to_owned(),
        "srvr" | "stat" => {
            server.mode().map_or(NOT_SERVING.to_owned(), |m| state(server, &disk, m))
        }
        "mntr" => server.mode().map_or(NOT_SERVING.to_owned(), |m| measures(server, &disk, m)),
        "conf" => configuration(server, &disk),
        "isro" => if server.mode().is_some() { "rw" } else { "null" }.to_owned(),
        // The others tell of connections and watches, which are not kept.
        _ => String::new(),
    })
}

fn state(server: &Server, disk: &Disk, mode: &str) -> String {
    format!(
        "Zookeeper version: {}\nLatency min/avg/max: 0/0.0/0\nReceived: 0\nSent: 0\n\
         Connections: 1\nOutstanding: 0\nZxid: 0x{:x}\nMode: {mode}\nNode count: {}\n",
        server.version,
        disk.transaction,
        disk.tree.len()
    )
}

fn measures(server: &Server, disk: &Disk, mode: &str) -> String {
    format!(
        "zk_version\t{}\nzk_server_state\t{mode}\nzk_znode_count\t{}\n",
        server.version,
        disk.tree.len()
    )
}

/// Effective settings, by the names that `conf` has for them.
fn configuration(server: &Server, disk: &Disk) -> String {
    let settings = server.settings();
    let number = |name: &str| settings.get(name).and_then(|text| text.parse::<i64>().ok());
    let tick = number("tickTime").unwrap_or(3000);
    let or = |name: &str, default: i64| number(name).unwrap_or(default);
    let entry = disk.config.as_ref().and_then(|config| config.members.get(&disk.id)).cloned();
    let (ports, client, votes) =
        entry.map_or_else(Default::default, |e| (e.ports, e.client, e.votes));
    let (quorum, election) = ports.split_once(':').unwrap_or_default();
    let client = client.rsplit(':').next().unwrap_or_default();
    let members = disk.config.as_ref().map(|config| config.text()).unwrap_or_default();
    format!(
        "clientPort={client}\nsecureClientPort=-1\ndataDir={dir}/version-2\ntickTime={tick}\n\
         maxClientCnxns={}\nminSessionTimeout={}\nmaxSessionTimeout={}\nserverId={}\n\
         initLimit={}\nsyncLimit={}\nelectionAlg=3\nelectionPort={election}\nquorumPort={quorum}\n\
         peerType={}\nmembership: \n{members}\n",
        or("maxClientCnxns", 60),
        or("minSessionTimeout", 2 * tick),
        or("maxSessionTimeout", 20 * tick),
        disk.id,
        or("initLimit", 0),
        or("syncLimit", 0),
        i32::from(!votes),
        dir = settings.get("dataDir").map_or("/data", String::as_str),
    )
}
