//! The configuration of an ensemble: its members, their addresses, its version.
//!
//! Must not know who is up.

use std::collections::BTreeMap;

use super::BAD_ARGUMENTS;

/// A member: where it is found, and whether it has a vote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) host: String,
    /// Ports for followers and for elections.
    pub(super) ports: String,
    pub(super) votes: bool,
    /// Where clients connect.
    pub(super) client: String,
}

/// Members by id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Config {
    pub(super) members: BTreeMap<u32, Entry>,
    pub(super) version: i64,
}

impl Entry {
    /// Reads `host:2888:3888:participant;2181`; without a role it is a participant.
    fn read(text: &str) -> Option<Entry> {
        let (address, client) = text.split_once(';')?;
        let mut parts = address.split(':');
        let (host, quorum, election) = (parts.next()?, parts.next()?, parts.next()?);
        let votes = match parts.next() {
            None | Some("participant") => true,
            Some("observer") => false,
            Some(_) => return None,
        };
        let numbers = [quorum, election].iter().all(|port| port.parse::<u16>().is_ok());
        let client = match client.rsplit_once(':') {
            Some((host, port)) => format!("{host}:{port}"),
            None => format!("0.0.0.0:{client}"),
        };
        let ports = format!("{quorum}:{election}");
        (numbers && !host.is_empty()).then(|| Entry { host: host.to_owned(), ports, votes, client })
    }

    fn line(&self) -> String {
        let role = if self.votes { "participant" } else { "observer" };
        format!("{}:{}:{role};{}", self.host, self.ports, self.client)
    }
}

impl Config {
    /// Ids of those who vote.
    pub(super) fn voters(&self) -> impl Iterator<Item = u32> + '_ {
        self.members.iter().filter(|(_, entry)| entry.votes).map(|(id, _)| *id)
    }

    /// Whether so many voters are a majority.
    pub(super) fn is_majority(&self, count: usize) -> bool {
        count > self.voters().count() / 2
    }

    /// As the node `/zookeeper/config` shows it.
    pub(super) fn text(&self) -> String {
        let lines =
            self.members.iter().map(|(id, entry)| format!("server.{id}={}\n", entry.line()));
        let members: String = lines.collect();
        format!("{members}version={:x}", self.version)
    }

    /// The members after an incremental change.
    pub(super) fn changed(&self, joining: &str, leaving: &str) -> Result<Config, i32> {
        let mut next = self.clone();
        for id in leaving.split(',').filter(|id| !id.trim().is_empty()) {
            next.members.remove(&id.trim().parse().map_err(|_| BAD_ARGUMENTS)?);
        }
        for line in joining.split(',').filter(|line| !line.trim().is_empty()) {
            let (id, entry) = line.trim().split_once('=').ok_or(BAD_ARGUMENTS)?;
            let id = id.strip_prefix("server.").and_then(|id| id.parse().ok());
            let entry = Entry::read(entry).ok_or(BAD_ARGUMENTS)?;
            next.members.insert(id.ok_or(BAD_ARGUMENTS)?, entry);
        }
        if next.voters().next().is_none() { Err(BAD_ARGUMENTS) } else { Ok(next) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_join_change_and_leave() {
        let config = Config::default()
            .changed("server.1=a:2888:3888:participant;2181,server.2=b:2888:3888:observer;2181", "")
            .unwrap_or_default();
        assert_eq!(config.voters().collect::<Vec<_>>(), [1]);
        assert_eq!(
            config.text(),
            "server.1=a:2888:3888:participant;0.0.0.0:2181\n\
             server.2=b:2888:3888:observer;0.0.0.0:2181\nversion=0"
        );
        let both = config.changed("server.2=b:2888:3888;2181", "").unwrap_or_default();
        assert_eq!(both.voters().collect::<Vec<_>>(), [1, 2]);
        assert!(!both.is_majority(1) && both.is_majority(2));
        assert_eq!(both.changed("", "1,2"), Err(BAD_ARGUMENTS), "somebody must vote");
        assert_eq!(both.changed("server.3=c", ""), Err(BAD_ARGUMENTS));
    }
}
