import { change, danger } from './shell-findings.js';
import type { Finding, Handler, Invocation } from './shell-types.js';

/** Programs that act on the machine or on other users whatever they are told, and why. */
const always: Readonly<Record<string, string>> = {
  'sudo sudoedit su doas pkexec run0 runuser sg newgrp gosu su-exec calife dzdo please machinectl kdesu gksudo gksu visudo vipw': 'takes the rights of another user',
  'login agetty': 'takes the rights of another user',
  'keytool certutil update-ca-certificates trust': 'changes which keys and servers are believed',
  'consul nomad': 'changes what runs elsewhere',
  'passwd chpasswd chsh chfn chage useradd usermod userdel adduser deluser groupadd groupmod groupdel gpasswd newusers pwconv grpconv dscl dseditgroup sysadminctl faillock': 'changes accounts',
  'insmod modprobe rmmod depmod kmod kexec sysctl bpftool kldload': 'changes the kernel',
  'mount umount mount.cifs mount.nfs sshfs swapon swapoff losetup cryptsetup dmsetup mdadm zpool zfs btrfs lvremove vgremove pvremove lvcreate lvextend fusermount pivot_root diskutil hdiutil': 'changes what is mounted',
  'mkfs mke2fs mkfs.ext2 mkfs.ext3 mkfs.ext4 mkfs.xfs mkfs.btrfs mkfs.vfat mkfs.fat mkfs.ntfs mkfs.f2fs mkswap fdisk sfdisk cfdisk gdisk sgdisk parted partprobe wipefs blkdiscard hdparm nvme badblocks fsck e2fsck tune2fs resize2fs xfs_repair debugfs format grub-install update-grub efibootmgr flashrom fwupdmgr': 'changes disks',
  'service initctl rc-service rc-update update-rc.d chkconfig launchctl loginctl sv supervisorctl pm2 monit invoke-rc.d': 'controls services',
  'shutdown reboot halt poweroff init telinit rtcwake pm-suspend systemd-run': 'stops the machine or starts what outlives the call',
  'iptables ip6tables nft ufw firewall-cmd ipset ebtables arptables pfctl tc wg wg-quick openvpn route brctl ethtool iwconfig nmcli networksetup rfkill': 'changes the network',
  'unshare nsenter chroot setpriv capsh bwrap firejail lxc lxc-attach lxd proot systemd-nspawn runc crun ctr crictl fakechroot': 'changes what a process may see and do',
  'at atrm batch anacron': 'runs something later',
  'tmux screen dtach abduco byobu zellij daemonize daemon start-stop-daemon': 'starts what outlives the call',
  'pkill killall killall5 xkill skill slay renice': 'ends or slows processes',
  'ld.so ld-linux.so.2': 'starts a program through the loader', 'gdbserver gcore reptyr ptrace bpftrace perf-trace sysdig frida dtrace': 'reaches into other processes',
  'xclip xsel pbpaste wl-paste xdotool ydotool scrot screencapture grim maim gnome-screenshot spectacle dbus-send gdbus busctl xinput xev': 'reaches the desktop of the user',
  'stress stress-ng forkbomb bonnie++ iozone hping3 slowloris ab wrk siege': 'uses up the machine',
  'update-alternatives alternatives ldconfig dpkg-reconfigure pam-auth-update authconfig setenforce semanage restorecon setsebool aa-disable aa-complain apparmor_parser auditctl timedatectl localectl hwclock ntpdate chronyc tzselect defaults csrutil spctl tccutil nvram scutil': 'changes the settings of the machine',
  'direnv': 'lets a folder set the environment', 'mise asdf pyenv rbenv nvm fnm volta sdk rustup ghcup': 'installs or switches programs',
  'aircrack-ng airodump-ng aireplay-ng reaver wifite msfconsole msfvenom sqlmap hydra john hashcat mimikatz linpeas nikto gobuster crackmapexec responder evil-winrm impacket-secretsdump': 'attacks machines',
};

export const systemHandlers: ReadonlyMap<string, Handler> = new Map<string, Handler>([
  ...Object.entries(always).flatMap(([names, why]) => names.split(' ').map((name): [string, Handler] => [name, (call) => danger(call, why)])),
  ['sysctl', sysctl], ['systemctl', systemctl], ['crontab', (call) => (call.args.length === 1 && call.args[0]?.text === '-l' ? change(call, 'lists what runs later') : danger(call, 'changes what runs later'))], ['atq', (call) => change(call, 'lists what runs later')],
  ['mount', (call) => (call.args.length === 0 || (call.args[0]?.text === '-l' && call.args.length === 1) ? [] : danger(call, 'changes what is mounted'))], ['findmnt', () => []], ['blkid', () => []],
  ['ip', ip], ['ifconfig', (call) => (call.args.length <= 1 ? [] : danger(call, 'changes the network'))], ['route', (call) => (call.args.every(({ text }) => text.startsWith('-n')) ? [] : danger(call, 'changes the network'))], ['hostnamectl', (call) => (call.args.length === 0 || call.args[0]?.text === 'status' ? [] : danger(call, 'changes the machine'))], ['timedatectl', (call) => (call.args.length === 0 || /^(?:status|show)$/.test(call.args[0]?.text ?? '') ? [] : danger(call, 'sets the clock'))],
  ['fuser', (call) => (call.args.some(({ text }) => /^-[a-zA-Z]*k|^--kill/.test(text)) ? danger(call, 'ends processes') : change(call, 'looks who uses a file'))], ['top', waits], ['htop', waits], ['btop', waits], ['watchman', waits], ['inotifywait', waits], ['ldd', (call) => change(call, 'may run the program')],
  ['gdb', (call) => danger(call, 'runs commands of the debugger')], ['lldb', (call) => danger(call, 'runs commands of the debugger')], ['perf', (call) => (call.args.some(({ text }) => /^-[pa]$|^--(?:pid|all-cpus)/.test(text)) ? danger(call, 'reaches into other processes') : change(call, 'observes programs'))], ['ffmpeg', (call) => (call.args.some(({ text }) => /x11grab|avfoundation|^https?:|^rtmp|^tcp:|^udp:|concat:|subfile/.test(text)) ? danger(call, 'reaches the desktop or the network') : change(call, 'writes media'))],
  ['rustup', (call) => (/^(?:show|which|--version)$/.test(call.args[0]?.text ?? '') ? [] : danger(call, 'installs or switches programs'))], ['nvm', (call) => (/^(?:ls|list|current|version|which)$/.test(call.args[0]?.text ?? '') ? change(call, 'lists versions') : danger(call, 'installs or switches programs'))],
]);

function waits(call: Invocation): readonly Finding[] {
  return change(call, 'runs until it is stopped');
}

function sysctl(call: Invocation): readonly Finding[] {
  return call.args.some(({ text }) => text.includes('=') || /^-[a-zA-Z]*[wpf]|^--(?:write|load|system)/.test(text)) ? danger(call, 'changes the kernel') : change(call, 'reads settings of the kernel');
}

function systemctl(call: Invocation): readonly Finding[] {
  const verb = call.args.find(({ text }) => !text.startsWith('-'))?.text ?? '';
  if (call.args.some(({ text }) => /^-H|^--host|^-M|^--machine|^--root|^--image/.test(text))) return danger(call, 'controls another machine');
  return /^(?:status|is-active|is-enabled|is-failed|is-system-running|list-units|list-unit-files|list-timers|list-sockets|list-dependencies|show|cat|get-default|help|)$/.test(verb) && verb !== '' ? [] : verb === '' ? change(call, 'lists services') : danger(call, 'controls services');
}

function ip(call: Invocation): readonly Finding[] {
  const words = call.args.map(({ text }) => text).filter((text) => !text.startsWith('-'));
  if (call.args.some(({ text }) => /^-b|^--?batch/.test(text)) || words[0] === 'netns') return danger(call, 'runs commands of its own');
  return words.length <= 1 || /^(?:show|list|ls|sh|l|lst|get)$/.test(words[1] ?? '') ? [] : danger(call, 'changes the network');
}
